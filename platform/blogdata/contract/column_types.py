"""Spark SQL column types without Spark: parsed from their text or from a Delta schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from blogdata.errors import ConfigurationError

T = TypeVar("T")
_TOKEN = re.compile(r"\s*(`[^`]+`|[A-Za-z_]\w*|\d+|[<>(),:])")
_SYNONYMS = dict(
    pair.split("=")
    for pair in "byte=tinyint short=smallint integer=int long=bigint real=float numeric=decimal dec=decimal "
    "varchar=string char=string timestamp_ltz=timestamp".split()
)


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
    return _parsed(text, _type)


def parse_fields(text: str) -> tuple[Field, ...]:
    """Parse a list of fields such as `id STRING NOT NULL, context STRUCT<ip: STRING>`."""
    return _parsed(text, lambda tokens: tuple(_fields(tokens)))


def of_delta(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    return tuple(Field(field["name"], _of_delta(field["type"]), field["nullable"]) for field in schema["fields"])


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


def _parsed(text: str, read: Callable[[list[str]], T]) -> T:
    tokens = _TOKEN.findall(text)[::-1]
    try:
        if "".join("".join(tokens[::-1]).split()) != "".join(text.split()):
            raise ValueError
        parsed = read(tokens)
        if tokens:
            raise ValueError
    except (IndexError, ValueError) as error:
        raise ConfigurationError(
            what="this is not a type of Spark SQL",
            where=f"'{text}'",
            next_step="write it like ARRAY<STRUCT<at: TIMESTAMP, amount: DECIMAL(10, 2)>>",
        ) from error
    return parsed


def _type(tokens: list[str]) -> DataType:
    name = _name(tokens).lower()
    name = _SYNONYMS.get(name, name)
    if name not in ("array", "map", "struct"):
        return _primitive(name, tokens)
    _take(tokens, "<")
    kind: DataType
    if name == "array":
        kind = Array(_type(tokens))
    elif name == "map":
        key = _type(tokens)
        _take(tokens, ",")
        kind = Map(key, _type(tokens))
    else:
        kind = Struct(tuple(_fields(tokens)) if tokens[-1] != ">" else ())
    _take(tokens, ">")
    return kind


def _primitive(name: str, tokens: list[str]) -> Primitive:
    numbers: list[int] = []
    if _has(tokens, "("):
        while not _has(tokens, ")"):
            numbers.append(int(tokens.pop()))
            _has(tokens, ",")
    # A length limits what is written, not how it is read.
    return Primitive(name, (*numbers, *(10, 0)[len(numbers) :]) if name == "decimal" else ())


def _fields(tokens: list[str]) -> Iterator[Field]:
    while True:
        name = _name(tokens).strip("`")
        _has(tokens, ":")
        kind = _type(tokens)
        if required := _has(tokens, "not"):
            _take(tokens, "null")
        yield Field(name=name, type=kind, nullable=not required)
        if not _has(tokens, ","):
            return


def _name(tokens: list[str]) -> str:
    if not re.match("[a-z_`]", tokens[-1], re.IGNORECASE):
        raise ValueError
    return tokens.pop()


def _has(tokens: list[str], token: str) -> bool:
    is_next = bool(tokens) and tokens[-1].lower() == token
    return bool(is_next and tokens.pop())


def _take(tokens: list[str], token: str) -> None:
    if not _has(tokens, token):
        raise ValueError
