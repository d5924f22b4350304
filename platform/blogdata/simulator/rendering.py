"""Renders the visit events of an hour as JSON lines: all of them in one fast pass, or some with changed fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from blogdata.simulator.changes import FieldChange, Shape, braces, constant, pair
from blogdata.simulator.text import Ints, Texts, join, join_present, literal
from blogdata.simulator.visits import Hour

CONTEXT = "context"
USER = "context.user"
TECHNICAL = "context.technical"
_TECHNICAL_FIELDS = ("browser", "browser_version", "network_type", "device_type", "device_version")
VISIT = Shape(
    required=("visit_id", "event_time", "user_id", "page"),
    optional=(
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
    ),
    time="event_time",
    wrong_types=(
        ("visit_id", "12345"),
        ("event_time", "1767571200000"),
        ("user_id", '{"id":1}'),
        ("page", '["/"]'),
        ("keep_private", "1"),
        (CONTEXT, '"none"'),
        (USER, "[]"),
        (TECHNICAL, "7"),
    ),
    numbers=(
        ("keep_private", '"true"'),
        ("context.technical.browser_version", "12"),
        ("context.technical.device_version", "17.20"),
        ("context.ad_id", "1e3"),
        ("context.user.login", "true"),
    ),
    other=("context.ad_id", ('"ad-conflict-1"', '"ad-conflict-2"')),
)


@dataclass(frozen=True, kw_only=True)
class Visits:
    """The visit events of an hour, to be rendered."""

    hour: Hour
    shape: ClassVar[Shape] = VISIT

    @property
    def event_ms(self) -> Ints:
        return self.hour.event_ms

    @property
    def arrival_ms(self) -> Ints:
        return self.hour.arrival_ms

    def times(self, rows: Ints, moments: Ints) -> Texts:
        return self.hour.times(rows, moments)

    def clean(self) -> Texts:
        at, of = pa.array(self.hour.session), self.hour.sessions
        head = join(literal('{"visit_id":'), of["visit_id"], literal(',"event_time":'))
        middle = join(literal(',"user_id":'), of["user_id"], literal(',"keep_private":'), of["keep_private"])
        middle = join(middle, literal(',"page":'))
        tail = join(literal(',"ad_id":'), of["ad_id"], literal(',"user":'), _user(of), literal(',"technical":'))
        tail = join(tail, _technical(of), literal("}}\n"))
        return join(
            head.take(at),
            self.hour.times(),
            middle.take(at),
            self.hour.page,
            literal(',"context":{"referral":'),
            self.hour.referral,
            tail.take(at),
        )

    def changed(
        self, rows: Ints, changes: Sequence[FieldChange] = (), extra: str | None = None, inner: str | None = None
    ) -> Texts:
        """Render some events with changed fields, without line feed; `inner` is added to the context."""
        at = pa.array(self.hour.session[rows])
        values = {name: column.take(at) for name, column in self.hour.sessions.items()}
        values["event_time"] = self.hour.times(rows)
        values["page"] = self.hour.page.take(pa.array(rows))
        values["referral"] = self.hour.referral.take(pa.array(rows))

        def named(parent: str, name: str, value: Texts | None = None) -> Texts:
            path = f"{parent}.{name}" if parent else name
            return pair(path, values[name] if value is None else value, changes)

        user = braces([named(USER, name) for name in ("ip", "login", "connected_since")])
        technical = braces([named(TECHNICAL, name) for name in _TECHNICAL_FIELDS])
        parts = [named(CONTEXT, name) for name in ("referral", "ad_id")]
        parts += [named(CONTEXT, "user", user), named(CONTEXT, "technical", technical)]
        context = braces(parts + constant(inner, len(rows)))
        top = [named("", name) for name in ("visit_id", "event_time", "user_id", "keep_private", "page")]
        return braces([*top, named("", CONTEXT, context), *constant(extra, len(rows))])


def _user(of: Mapping[str, Texts]) -> Texts:
    since = join_present([join(literal(',"connected_since":'), of["connected_since"]), literal("")], "")
    return join(literal('{"ip":'), of["ip"], literal(',"login":'), of["login"], since, literal("}"))


def _technical(of: Mapping[str, Texts]) -> Texts:
    pieces = [piece for name in _TECHNICAL_FIELDS for piece in (literal(f',"{name}":'), of[name])]
    return join(literal('{"browser":'), *pieces[1:], literal("}"))
