"""What reads a line of a log format: of text by an expression, of columns by a tabulator or a space, of JSON by keys.

Expressions take linear time: what is repeated never contains what follows it, so that giving back finds nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NoReturn
from urllib.parse import unquote

FIELDS = ("address", "time", "request", "status", "host", "bytes", "forwarded", "referrer", "agent")
"""The fields of a request that are read from its line; a format may lack those after the status."""
REQUIRED = FIELDS[:4]
PIECES = ("method", "target", "query", "date")
"""Fields that a format may have in place of `request` and of the day in `time`."""
CAPTURED = (*FIELDS, *PIECES)
LISTED = "listed"
"""What stands before the address, in a list with it."""
_WHOLE = frozenset(FIELDS)

FIELD_PATTERNS = {
    "method": r"[A-Z-]+",
    # Traefik writes 0, HAProxy -1, and load balancers a dash, for a client that was gone before an answer.
    "status": r"(?:\d{3}|0|-1?)",
    "bytes": r"(?:\+?\d+|-)",
}
_COLUMNS = {
    "date": r"\d{4}-\d\d-\d\d",
    "time": r"\d\d:\d\d:\d\d(?:\.\d+)?",
    **FIELD_PATTERNS,
    "s-ip": r"[0-9A-Fa-f.:%]+",
}


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """A log format of text: the fields of a line in order, each with the expression up to its end.

    `groups` are the fields that the expressions capture, in the order of their groups.
    """

    name: str
    steps: tuple[tuple[str, str], ...]
    groups: tuple[str, ...]

    @property
    def expressions(self) -> tuple[str, ...]:
        return tuple(pattern for _, pattern in self.steps)

    def misfit(self, body: str) -> tuple[int, int, str]:
        """Return how many fields of a request a line has before its first field that does not fit, how many of any
        kind, and the name of that field, or `end`."""
        nested, marks = self._nested
        match = nested.match(body)
        count = marks.index(match.lastindex) + 1 if match and match.lastindex else 0
        # Any word fits a field that is not read, and any text what was forwarded: they tell less.
        fits = sum(field in CAPTURED and field != "forwarded" for field, _ in self.steps[:count])
        return fits, count, self.steps[count][0] if count < len(self.steps) else "end"

    def user(self, body: str) -> str:
        """Return what a line has for the user, with the text before it; of one that is cut off behind it as well."""
        nested, marks = self._nested
        match = nested.match(body)
        ends = [0, *(match.end(mark) for mark in marks)] if match else []
        places = (at for at, (field, _) in enumerate(self.steps, start=1) if field == "user")
        return " ".join(body[ends[at - 1] : ends[at]] for at in places if ends and ends[at] > 0)

    @cached_property
    def _nested(self) -> tuple[re.Pattern[str], list[int]]:
        """The expression for as many fields as a line has, and for each field the group that is there with it."""
        groups = [re.compile(pattern, re.ASCII).groups + 1 for pattern in self.expressions]
        nested = ""
        for pattern in reversed(self.expressions):
            nested = f"(?:{pattern}(){nested})?"
        return re.compile(nested, re.ASCII), list(accumulate(groups))


class TextFormats:
    """Formats of text as one expression, in which those that begin alike share their beginning.

    A line is read by the first of them that it fits, provided that those which begin otherwise fit other lines.
    """

    def __init__(self, formats: Sequence[TextFormat]) -> None:
        self.formats = formats
        self._groups = 0
        self._ends: dict[int, tuple[str, tuple[tuple[str, int], ...]]] = {}
        begun = [(log_format, log_format.expressions, ()) for log_format in formats]
        self._line = re.compile(self._expression(begun), re.ASCII)

    def read(self, body: str) -> tuple[str, dict[str, str]] | None:
        """Return the name of the format that a line fits, and its fields; None if it fits none."""
        match = self._line.fullmatch(body)
        if match is None:
            return None
        assert match.lastindex is not None
        name, groups = self._ends[match.lastindex]
        fields = {field: text for field, at in groups if (text := match[at]) is not None}
        return name, fields if fields.keys() <= _WHOLE else composed(fields)

    def _expression(self, begun: Sequence[_Begun]) -> str:
        """Build the expression for what is left of formats, each with the numbers of its groups so far."""
        alternatives: dict[str, list[_Begun]] = {}
        for log_format, steps, numbers in begun:
            alternatives.setdefault(steps[0] if steps else _END, []).append((log_format, steps[1:], numbers))
        built = []
        for step, same in alternatives.items():
            first = self._groups + 1
            self._groups += re.compile(step, re.ASCII).groups
            if step == _END:
                log_format, _, numbers = same[0]
                self._ends[self._groups] = log_format.name, tuple(zip(log_format.groups, numbers, strict=True))
                built.append(step)
            else:
                further = range(first, self._groups + 1)
                left = [(log_format, steps, (*numbers, *further)) for log_format, steps, numbers in same]
                built.append(step + self._expression(left))
        return f"(?:{'|'.join(built)})"


_Begun = tuple[TextFormat, tuple[str, ...], tuple[int, ...]]
_END = r"()\Z"
"""Expression for the end of a line; its group tells which format has ended."""


@dataclass(frozen=True, kw_only=True)
class ColumnFormat:
    """A log format of columns: by tabulators in a line that has one, else by spaces.

    `taken` has the place of the column of each field; `lacks` is a field that no column has: no line can be read.
    """

    name: str
    all_columns: tuple[str, ...]
    taken: Mapping[str, int]
    lacks: str | None = None

    @property
    def formats(self) -> Sequence[ColumnFormat]:
        return (self,)

    def read(self, body: str) -> tuple[str, dict[str, str]] | None:
        values = self._values(body)
        if self.lacks or len(values) < len(self.columns) or not all(values[: len(self.columns)]):
            return None
        if not all(fits(values[at]) for at, fits in self._checks.items()):
            return None
        return self.name, composed(self._decoded({field: values[at] for field, at in self.taken.items()}))

    def misfit(self, body: str) -> tuple[int, int, str]:
        """Return the same as :meth:`TextFormat.misfit`."""
        values, fields, fits = self._values(body), self._fields, 0
        for at, column in enumerate(self.columns):
            check = self._checks.get(at)
            if at >= len(values) or not values[at] or (check and not check(values[at])):
                return fits, at, fields.get(at, column)
            fits += fields.get(at, "forwarded") != "forwarded"
        return fits, len(self.columns), self.lacks or "end"

    def user(self, body: str) -> str:
        return dict(zip(self.all_columns, body.split("\t" if "\t" in body else " "), strict=False)).get(USER, "")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns up to the last one that is read."""
        return self.all_columns[: max(self.taken.values(), default=-1) + 1]

    def _values(self, body: str) -> list[str]:
        return body.split("\t" if "\t" in body else " ", len(self.columns))

    def _decoded(self, fields: dict[str, str]) -> dict[str, str]:
        if EDGE not in self.all_columns:
            return {**fields, **{name: fields[name].replace("+", " ") for name in _SPACED & fields.keys()}}
        # CloudFront encodes the percent signs of what was asked for; those of an agent twice, for years.
        once = {name: text.replace("%25", "%") for name, text in fields.items()}
        return {**once, **{name: unquote(once[name]) for name in _SPACED & once.keys()}}

    @cached_property
    def _fields(self) -> dict[int, str]:
        return {at: field for field, at in self.taken.items()}

    @cached_property
    def _checks(self) -> dict[int, Any]:
        patterns = {at: _COLUMNS.get(self._fields.get(at, column)) for at, column in enumerate(self.columns)}
        return {at: re.compile(text, re.ASCII).fullmatch for at, text in patterns.items() if text}


USER = "cs-username"
EDGE = "x-edge-location"
"""A column that only CloudFront has, which encodes what is not ASCII by percent; others write `+` for a space."""
_SPACED = frozenset(("agent", "forwarded"))


@dataclass(frozen=True, kw_only=True)
class JsonFormat:
    """A log format of JSON objects: the paths at which each field may be, of which the first with a value counts."""

    name: str
    paths: Mapping[str, tuple[tuple[str | int, ...], ...]]

    def read(self, document: object) -> dict[str, str]:
        match = dict.fromkeys(self._dashes, "-")
        for field, paths in self.paths.items():
            for path in paths:
                if (text := _text_at(document, path)) is not None:
                    match[field] = text
                    # Without a value here, a later place may have one.
                    if text not in ("", "-"):
                        break
        # Apache's directive for the time has brackets, also where it is a value of an object.
        match["time"] = match.get("time", "").strip("[]")
        # Traefik's ClientHost is the whole list that was forwarded, if one was.
        before, comma, address = match.get("address", "").rpartition(",")
        return composed({"forwarded": before, **match, "address": address.removeprefix(" ")} if comma else match)

    @cached_property
    def _dashes(self) -> tuple[str, ...]:
        """The headers that a client did not send if they are absent, since the object has all of them."""
        return tuple(
            name
            for name in ("referrer", "agent")
            if any({"headers", "httpRequest"} & {*path} for path in self.paths.get(name, ()))
        )


def composed(captured: dict[str, str]) -> dict[str, str]:
    """Compose the fields of a request from the pieces that a format has."""
    fields = {name: text for name, text in captured.items() if name in _WHOLE}
    if LISTED in captured and "forwarded" not in captured:
        fields["forwarded"] = captured[LISTED].rstrip(" ,")
    if "date" in captured:
        fields["time"] = f"{captured['date']}T{captured['time']}Z"
    if not fields.get("request") and "method" in captured and "target" in captured:
        query = captured.get("query", "").removeprefix("?")
        asked = f"?{query}" if query not in ("", "-") else ""
        fields["request"] = f"{captured['method']} {captured['target']}{asked} HTTP/1.1"
    # Of what was no request, nginx writes an empty text into an object.
    return {**fields, "request": "-"} if fields.get("request") == "" else fields


def document_in(text: str) -> dict[str, Any] | None:
    """Decode an object of JSON, with its numbers as texts; None for anything else."""
    try:
        document = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _number(text: str) -> str:
    """Write a number without an exponent, if it is one of a time or a size, and a whole one without a fraction."""
    if "e" in text.lower():
        if abs(value := float(text)) >= 1e20:
            return text
        text = f"{value:f}"
    return text.rstrip("0").rstrip(".")


# A number stays as it is written: of one that nobody reads any length will do.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=_number, parse_constant=_no_constant)


def _text_at(document: Any, path: tuple[str | int, ...]) -> str | None:
    for key in path:
        if isinstance(document, dict):
            document = document.get(key)
        else:
            is_there = isinstance(document, list) and isinstance(key, int) and key < len(document)
            document = document[key] if is_there else None
    return document if isinstance(document, str) else None
