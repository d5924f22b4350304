"""Renders the events of an hour as JSON lines: all of them in one fast pass, or some with changed fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from simulator.text import Flags, Ints, Texts, join, join_present, literal, texts
from simulator.visits import Hour

REQUIRED = ("visit_id", "event_time", "user_id", "page")
CONTEXT = "context"
USER = "context.user"
TECHNICAL = "context.technical"
_TECHNICAL_FIELDS = ("browser", "browser_version", "network_type", "device_type", "device_version")
OPTIONAL = (
    "keep_private",
    CONTEXT,
    "context.referral",
    "context.ad_id",
    USER,
    "context.user.ip",
    "context.user.login",
    "context.user.connected_since",
    TECHNICAL,
    *(f"context.technical.{name}" for name in _TECHNICAL_FIELDS),
)


@dataclass(frozen=True, kw_only=True)
class FieldChange:
    """Replaces the JSON value of a field in some rows.

    Args:
        path: Dotted path of the field.
        mask: Which rows to change.
        value: The new JSON text, one for all rows or a column; None removes the field.
    """

    path: str
    mask: Flags
    value: str | Texts | None


def clean_lines(hour: Hour) -> Texts:
    """Renders every event of the hour as a JSON line with line feed, in the hour's order."""
    at = pa.array(hour.session)
    of = hour.sessions
    head = join(literal('{"visit_id":'), of["visit_id"], literal(',"event_time":'))
    middle = join(literal(',"user_id":'), of["user_id"], literal(',"keep_private":'), of["keep_private"])
    middle = join(middle, literal(',"page":'))
    tail = join(literal(',"ad_id":'), of["ad_id"], literal(',"user":'), _user(of), literal(',"technical":'))
    tail = join(tail, _technical(of), literal("}}\n"))
    return join(
        head.take(at),
        hour.times(),
        middle.take(at),
        hour.page,
        literal(',"context":{"referral":'),
        hour.referral,
        tail.take(at),
    )


def changed_lines(
    hour: Hour, rows: Ints, changes: Sequence[FieldChange] = (), extra: str | None = None, inner: str | None = None
) -> Texts:
    """Renders some events of the hour as JSON lines with changed fields, without line feed.

    Args:
        hour: The hour's events.
        rows: Positions of the events.
        changes: Changes to apply; their `mask` is over `rows`.
        extra: Another `"key":value`, added at the end of the object.
        inner: Another `"key":value`, added at the end of its context.
    """
    at = pa.array(hour.session[rows])
    values = {name: column.take(at) for name, column in hour.sessions.items()}
    values["event_time"] = hour.times(rows)
    values["page"] = hour.page.take(pa.array(rows))
    values["referral"] = hour.referral.take(pa.array(rows))
    return _Composer(values=values, changes=changes, rows=len(rows)).line(extra, inner)


def _user(of: Mapping[str, Texts]) -> Texts:
    since = join_present([join(literal(',"connected_since":'), of["connected_since"]), literal("")], "")
    return join(literal('{"ip":'), of["ip"], literal(',"login":'), of["login"], since, literal("}"))


def _technical(of: Mapping[str, Texts]) -> Texts:
    pieces = [piece for name in _TECHNICAL_FIELDS for piece in (literal(f',"{name}":'), of[name])]
    return join(literal('{"browser":'), *pieces[1:], literal("}"))


@dataclass(frozen=True, kw_only=True)
class _Composer:
    values: Mapping[str, Texts]
    changes: Sequence[FieldChange]
    rows: int

    def line(self, extra: str | None, inner: str | None) -> Texts:
        user = self._object(USER, ("ip", "login", "connected_since"))
        technical = self._object(TECHNICAL, _TECHNICAL_FIELDS)
        parts = [self._pair(CONTEXT, name) for name in ("referral", "ad_id")]
        parts += [self._pair(CONTEXT, "user", user), self._pair(CONTEXT, "technical", technical)]
        context = _braces(parts + self._constant(inner))
        names = ("visit_id", "event_time", "user_id", "keep_private", "page")
        top = [self._pair("", name) for name in names] + [self._pair("", CONTEXT, context)]
        return _braces(top + self._constant(extra))

    def _object(self, path: str, names: Sequence[str]) -> Texts:
        return _braces([self._pair(path, name) for name in names])

    def _pair(self, parent: str, name: str, value: Texts | None = None) -> Texts:
        path = f"{parent}.{name}" if parent else name
        text = self.values[name] if value is None else value
        for change in self.changes:
            if change.path == path:
                new = literal(change.value) if isinstance(change.value, str) else change.value
                new = pa.scalar(None, pa.large_string()) if new is None else new
                text = pc.if_else(pa.array(change.mask), new, text)
        return join(literal(f'"{name}":'), text)

    def _constant(self, piece: str | None) -> list[Texts]:
        return [] if piece is None else [texts([piece]).take(pa.array(np.zeros(self.rows, np.int64)))]


def _braces(pairs: Sequence[Texts]) -> Texts:
    return join(literal("{"), join_present(pairs, ","), literal("}"))
