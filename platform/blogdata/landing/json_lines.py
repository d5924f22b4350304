"""Reads landed lines of JSON, each of which must be exactly one object, by a declaration of their fields.

A plainly good line is decoded once, by its types; only others are read again, field by field, for all reasons.

Decisions: if a key occurs twice, the last value is used; single quotes, NaN, comments and trailing commas are not JSON,
nor is nesting beyond :data:`DEEPEST` levels, whatever is left of the interpreter's stack; a string with half a
surrogate pair has no UTF-8 form and has the wrong type; a JSON array is `not_json` even if it holds objects; a blank
identifier counts as missing, since no downstream table accepts it. Fields that are not declared do not matter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec

EARLIEST = datetime(2000, 1, 1, tzinfo=timezone.utc)
"""The first time that an event may have."""
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d)(?:(:\d\d)(?:[.,](\d+))?)?(?:Z|([+-])(\d\d)(?::?([0-5]\d))?)", re.ASCII
)
_WIDEST = timedelta(hours=18)
MAX_BYTES = 1_048_576
DEEPEST = 512
"""Levels of objects and arrays within each other."""

_NO_BRACKETS = bytes({*range(256)} - {*b"{}[]"})
_BLANK = " \t\n\r\f\v"
# A string without an end reaches to the end: otherwise each escaped quote in it would begin another search.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)

Read = tuple[Sequence[Any], tuple[str, ...]]
"""The values of the declared fields, None where one is absent or has a reason, and the reasons to reject the line."""


class Kind(Enum):
    """What a field may be in a line, besides absent or null."""

    TEXT = "a string"
    LABEL = "a string, or a number, which is taken as it is written"
    TIME = "a string with a time"
    FLAG = "true or false"


@dataclass(frozen=True)
class Field:
    """A field of a line, by its dotted path; a required identifier must not be blank either."""

    path: str
    kind: Kind = Kind.TEXT
    required: bool = False
    identifies: bool = False

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


class Number(str):
    """A number in a line, as it is written there."""


@cache
def reader(fields: tuple[Field, ...]) -> Callable[[int, bytes], Read]:
    """Return what reads lines at any offset: the values of its fields, in their order, and all reasons to reject it."""
    decode = msgspec.json.Decoder(_struct("", fields)).decode
    members = attrgetter(*(field.path for field in fields))
    identifiers = [at for at, field in enumerate(fields) if field.identifies]
    times = [at for at, field in enumerate(fields) if field.kind is Kind.TIME]

    def read(_: int, raw: bytes) -> Read:
        if not _is_plain(raw):
            return _judged(raw, fields)
        try:
            values = list(members(decode(raw)))
        except (msgspec.DecodeError, RecursionError):
            return _judged(raw, fields)
        for at in identifiers:
            if not values[at].strip(" "):
                return _judged(raw, fields)
        for at in times:
            if values[at] is not None:
                values[at] = iso_time(values[at])
                if values[at] is None:
                    return _judged(raw, fields)
        return values, ()

    return read


def values_of(document: Mapping[str, object], fields: Sequence[Field]) -> Read:
    """Read the values of the fields of an object; the reasons of types come before those of times."""
    reasons: list[str] = []
    unreadable: list[str] = []
    objects: dict[str, Mapping[str, object]] = {"": document}

    def inside(path: str) -> Mapping[str, object]:
        if path not in objects:
            above, _, name = path.rpartition(".")
            value = inside(above).get(name)
            if value is not None and not isinstance(value, dict):
                reasons.append(f"wrong_type:{path}")
            objects[path] = value if isinstance(value, dict) else {}
        return objects[path]

    def value_of(field: Field) -> object:
        value = inside(field.path.rpartition(".")[0]).get(field.name)
        if value is None or (field.identifies and isinstance(value, str) and not value.strip(" ")):
            if field.required:
                reasons.append(f"missing_field:{field.path}")
            return None
        if field.kind is Kind.FLAG and isinstance(value, bool):
            return value
        if field.kind is Kind.LABEL and isinstance(value, Number):
            return str(value)
        if field.kind is Kind.FLAG or not _is_text(value):
            reasons.append(f"wrong_type:{field.path}")
            return None
        if field.kind is not Kind.TIME:
            return value
        time = iso_time(str(value))
        if time is None:
            unreadable.append(f"invalid_time:{field.path}")
        return time

    values = [value_of(field) for field in fields]
    return values, (*reasons, *unreadable)


def text_of(raw: bytes) -> str | None:
    """Return the text of a line; None if :func:`unreadable_line` has a reason."""
    if len(raw) > MAX_BYTES or not raw.strip():
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def unreadable_line(raw: bytes) -> str:
    if len(raw) > MAX_BYTES:
        return "too_large"
    return "not_utf8" if raw.strip() else "empty_line"


def _judged(raw: bytes, fields: Sequence[Field]) -> Read:
    """Read a line with each number a :class:`Number`, for all reasons to reject it."""
    nothing, text = (None,) * len(fields), text_of(raw)
    if text is None:
        return nothing, (unreadable_line(raw),)
    if _depth(raw) <= DEEPEST:
        try:
            document = _JSON.decode(text)
            return values_of(document, fields) if isinstance(document, dict) else (nothing, ("not_json",))
        except ValueError:
            pass
    line = text.strip(_BLANK)
    return nothing, ("truncated" if line.startswith('{"') and not line.endswith("}") else "not_json",)


def _struct(above: str, fields: Sequence[Field]) -> type[msgspec.Struct]:
    """Define the type of the object at a path, which ends with a dot if it is not empty."""
    members: dict[str, tuple[Any, ...]] = {}
    for field in fields:
        name, dot, _ = field.path[len(above) :].partition(".")
        if not field.path.startswith(above) or name in members:
            continue
        if dot:
            inner = _struct(f"{above}{name}.", fields)
            members[name] = (name, inner, msgspec.field(default_factory=inner))
        else:
            type_ = bool if field.kind is Kind.FLAG else str
            members[name] = (name, type_) if field.required else (name, type_ | None, None)
    return msgspec.defstruct("Line", members.values(), kw_only=True, gc=False)


def _is_plain(raw: bytes) -> bool:
    """Return whether a line is small, flat and UTF-8; the typed decode does not check what it skips."""
    if len(raw) > 2 * DEEPEST and (len(raw) > MAX_BYTES or _depth(raw) > DEEPEST):
        return False
    return raw.isascii() or text_of(raw) is not None


def _depth(raw: bytes) -> int:
    """Return how deep a line is nested; the number of its opening brackets, if these cannot be too many."""
    opened = raw.count(b"{") + raw.count(b"[")
    if opened <= DEEPEST:
        return opened
    depth = deepest = 0
    for bracket in _STRING.sub(b"", raw).translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"{[" else -1
        deepest = max(deepest, depth)
        if depth > DEEPEST:
            break
    return deepest


def _is_text(value: object) -> bool:
    if not isinstance(value, str) or isinstance(value, Number):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_JSON = json.JSONDecoder(parse_constant=_no_constant, parse_int=Number, parse_float=Number)


def iso_time(text: str) -> datetime | None:
    """Parse an ISO 8601 date-time with an offset or Z as a time in UTC; None for anything else.

    Seconds are optional; a fraction follows `.` or `,` and is cut to microseconds; `T` and `Z` are in upper case;
    offsets reach 18 hours; there is no 24:00 and no leap second. A time whose year in UTC is not 1 to 9999 is none.
    """
    # With these separators, the standard library takes nothing but digits between them.
    is_usual = text[4:20:3] == "--T::." and text[-1] == "Z" and text[11:13] < "24"
    if is_usual and text[20:-1].isdigit() and text.isascii():
        try:
            return datetime.fromisoformat(f"{text[:-1]}+00:00")
        except ValueError:
            # Python 3.10 takes fractions of three or six digits only.
            return _unusual_time(text)
    return _unusual_time(text)


def _unusual_time(text: str) -> datetime | None:
    try:
        match = _ISO.fullmatch(text)
        if match is None:
            return None
        minute, second, fraction, sign, hours, minutes = match.groups()
        fraction = (fraction or "")[:6].ljust(6, "0")
        time = datetime.fromisoformat(f"{minute}{second or ':00'}.{fraction}+00:00")
        if sign is None:
            return time
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if offset > _WIDEST:
            return None
        return time - offset if sign == "+" else time + offset
    except (ValueError, OverflowError):
        return None
