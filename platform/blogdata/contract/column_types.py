"""Spark SQL column types without Spark: parsed from their text or from a Delta schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from blogdata.errors import ConfigurationError

T = TypeVar("T")
_TOKEN = re.compile(r"\s*(`[^`]+`|[A-Za-z_]\w*|\d+|[<>(),:])")
_SYNONYMS = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "numeric": "decimal",
    "dec": "decimal",
    "varchar": "string",
    "char": "string",
    "timestamp_ltz": "timestamp",
}
_WORD = r"[a-z_`].*"


@dataclass(frozen=True)
class Primitive:
    """A type without parts; a decimal has its precision and scale."""

    name: str
    parameters: tuple[int, ...] = ()

    def __str__(self) -> str:
        listed = ",".join(map(str, self.parameters))
        return f"{self.name}({listed})" if listed else self.name


@dataclass(frozen=True)
class Array:
    element: DataType

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True)
class Map:
    key: DataType
    value: DataType

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True)
class Struct:
    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return f"struct<{','.join(f'{field.name}:{field.type}' for field in self.fields)}>"


DataType = Primitive | Array | Map | Struct


@dataclass(frozen=True)
class Field:
    name: str
    type: DataType
    nullable: bool = True
    filled: bool = False


def parse(text: str) -> DataType:
    """Parse a type such as `ARRAY<STRUCT<at: TIMESTAMP, amount: DECIMAL(10, 2) NOT NULL>>`."""
    return _Parser(text).whole(_Parser.type)


def parse_fields(text: str) -> tuple[Field, ...]:
    """Parse a list of fields such as `id STRING NOT NULL, context STRUCT<ip: STRING>`."""
    return _Parser(text).whole(lambda parser: tuple(parser.fields()))


def of_delta(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    return tuple(
        Field(name=field["name"], type=_of_delta(field["type"]), nullable=field["nullable"])
        for field in schema["fields"]
    )


def _of_delta(given: Any) -> DataType:
    if isinstance(given, str):
        return parse(given)
    match given["type"]:
        case "struct":
            return Struct(of_delta(given))
        case "array":
            return Array(_of_delta(given["elementType"]))
        case _:
            return Map(_of_delta(given["keyType"]), _of_delta(given["valueType"]))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [match.group(1) for match in _TOKEN.finditer(text)]
        if "".join("".join(self._tokens).split()) != "".join(text.split()):
            raise self._refused()
        self._at = 0

    def whole(self, read: Callable[[_Parser], T]) -> T:
        found = read(self)
        if self._next():
            raise self._refused()
        return found

    def type(self) -> DataType:
        name = self._take(_WORD).lower()
        name = _SYNONYMS.get(name, name)
        if name not in ("array", "map", "struct"):
            return self._primitive(name)
        self._take("<")
        found: DataType
        if name == "array":
            found = Array(self.type())
        elif name == "map":
            key = self.type()
            self._take(",")
            found = Map(key, self.type())
        else:
            found = Struct(tuple(self.fields()) if self._next() != ">" else ())
        self._take(">")
        return found

    def _primitive(self, name: str) -> Primitive:
        numbers: list[int] = []
        if self._has("("):
            while self._next() != ")":
                numbers.append(int(self._take(r"\d+")))
                self._has(",")
            self._take(r"\)")
        if name == "decimal":
            return Primitive(name, (*numbers, *(10, 0)[len(numbers) :]))
        # A length limits what is written, not how it is read.
        return Primitive(name)

    def fields(self) -> Iterator[Field]:
        while True:
            name = self._take(_WORD).strip("`")
            self._has(":")
            kind = self.type()
            required = self._has("not")
            if required:
                self._take("null")
            yield Field(name=name, type=kind, nullable=not required)
            if not self._has(","):
                return

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _has(self, token: str) -> bool:
        found = self._next().lower() == token
        self._at += found
        return found

    def _take(self, pattern: str) -> str:
        if not re.fullmatch(pattern, self._next(), re.IGNORECASE):
            raise self._refused()
        self._at += 1
        return self._tokens[self._at - 1]

    def _refused(self) -> ConfigurationError:
        return ConfigurationError(
            what="this is not a type of Spark SQL",
            where=f"'{self._text}'",
            next_step="write it like ARRAY<STRUCT<at: TIMESTAMP, amount: DECIMAL(10, 2)>>",
        )
