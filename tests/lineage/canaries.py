"""Input with a value of its own in every field, so that each place that a value reaches can be found by its bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lineage.deployment import Deployment

DAY = "2026-01-31"
NEXT_DAY = "2026-02-01"
LOGGED_DAY = "31/Jan/2026"
FIRST, SECOND, LAST = (f"{DAY}T{hour:02d}" for hour in (9, 10, 12))
ADDRESSES = iter(f"9.77.{number // 200 + 1}.{number % 200 + 40}" for number in range(10_000))
"""Addresses of a public network, none of which is the beginning of another one."""
FACTS = frozenset({"page", "ad_id", "campaign", "full_name", "type", "version"})
"""Fields that say what happened or which device there is, not who."""
SHARED_BY_MANY = frozenset({"browser", "browser_version", "network_type", "device_type", "device_version", "host"})
"""Fields of a visitor that lead to one only together with others."""


@dataclass(frozen=True, kw_only=True)
class Canary:
    """A value that occurs in one field of the lines of one kind."""

    kind: str
    field: str
    token: str

    @property
    def identifies(self) -> bool:
        """It stands for one person."""
        return self.field not in FACTS | SHARED_BY_MANY


@dataclass(frozen=True)
class Canaries:
    """All canaries of an input, in the order in which they were made."""

    every: list[Canary] = field(default_factory=list)

    def of(self, kind: str, name: str) -> str:
        """Return the value of a field in the lines of a kind; the same one each time."""
        for known in self.every:
            if (known.kind, known.field) == (kind, name):
                return known.token
        token = next(ADDRESSES) if name in ("ip", "address") else f"zq{len(self.every):03d}canary"
        self.every.append(Canary(kind=kind, field=name, token=token))
        return token

    def event(self, kind: str, time: str, **more: Any) -> bytes:
        """Build a visit event of a kind; `more` replaces fields."""

        def own(name: str) -> str:
            return self.of(kind, name)

        fields = {
            "visit_id": own("visit_id"),
            "event_time": f"{DAY}T{time}:00Z",
            "user_id": own("user_id"),
            "keep_private": False,
            "page": f"/{own('page')}",
            "context": {
                "referral": f"https://{own('host')}.example/find?q={own('referral')}",
                "ad_id": own("ad_id"),
                "user": {"ip": own("ip"), "login": own("login"), "connected_since": f"{DAY}T08:00:00Z"},
                "technical": {name: own(name) for name in sorted(SHARED_BY_MANY - {"host"})},
            },
            "not_announced": own("not_announced"),
        }
        return json.dumps({**fields, **more}).encode()

    def user(self, kind: str, **more: Any) -> bytes:
        """Build a user as delivered."""
        named = {name: self.of(kind, name) for name in ("id", "login", "email", "not_announced")}
        return json.dumps({**named, "registered_datetime": "2025-12-31T08:00:00Z", **more}).encode()

    def display(self, kind: str, time: str, **more: Any) -> bytes:
        """Build a displayed ad."""
        named = {name: self.of(kind, name) for name in ("ad_id", "page", "visit_id", "campaign", "not_announced")}
        return json.dumps({**named, "display_time": f"{DAY}T{time}:00Z", **more}).encode()

    def request(self, kind: str, time: str, *, path: str = "/archive", status: int = 200) -> bytes:
        """Build a line of an access log in the combined format."""

        def own(name: str) -> str:
            return self.of(kind, name)

        return (
            f"{own('address')} - {own('login')} [{LOGGED_DAY}:{time}:00 +0000] "
            f'"GET {path}?token={own("query")} HTTP/1.1" {status} 12 '
            f'"https://other.example/find?q={own("referral")}" '
            f'"Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0 {own("agent")}"'
        ).encode()

    def found_in(self, content: bytes) -> Iterator[Canary]:
        """Find the canaries whose value is in some bytes."""
        return (canary for canary in self.every if canary.token.encode() in content)


def plant(made: Deployment) -> Canaries:
    """Land users, devices, ads, visits and requests, good and broken, each field with its own value."""
    all_ = Canaries()
    users = (
        [all_.user("user"), all_.user("broken user", id=None), all_.user("cut user")[:-20]],
        [all_.user("user", login=all_.of("changed user", "login")), all_.user("second user")],
    )
    devices = [json.dumps({name: all_.of("device", name) for name in ("type", "full_name", "version")}).encode()]
    for day, lines in zip((DAY, NEXT_DAY), users, strict=True):
        made.deliver("users", day, lines)
        made.deliver("devices", day, devices)
    visit = all_.event("visit", "09:05")
    again = all_.event("visit", "09:05", not_announced=all_.of("conflicting visit", "not_announced"))
    private = all_.event("private visit", "09:20", keep_private=True)
    broken = [all_.event("mistyped visit", "09:05", event_time=7), all_.event("cut visit", "09:06")[:-20]]
    clicked = {"ad_id": all_.of("visit", "ad_id"), "visit_id": all_.of("visit", "visit_id")}
    shown = [all_.display("display", "09:00", **clicked), all_.display("display", "09:00", **clicked, page="/other")]
    alone = [all_.display("display alone", "09:01"), all_.display("broken display", "09:02", campaign=3)]
    asked = [all_.request("request", "09:10"), all_.request("asset", "09:11", path="/a.css")]
    asked += [all_.request("missing page", "09:12", status=404), b"\x16 " + all_.request("cut request", "09:13")[:-40]]
    made.land(FIRST, [visit, visit, again, private, *broken])
    made.land(FIRST, [*shown, *alone], name="ads.json", table="ads")
    made.land(FIRST, asked, name="access.log")
    made.land(SECOND, [all_.event("later visit", "10:05")])
    made.land(SECOND, [], name="ads.json", table="ads")
    # An hour that arrives twenty times is refused.
    made.land(LAST, [*[all_.event("refused visit", "12:05")] * 20, all_.event("late visit", "09:30")])
    made.land(LAST, [], name="ads.json", table="ads")
    return all_
