"""Lines with rare odd values: each odd value alone, and random combinations of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

ARRIVALS = ("2026-01-31T05", "2026-01-31T06")
ABSENT = "ABSENT"
_HUGE = ("x" * 10_000, "ü" * 50_000, "a b" * 30_000)
_TEXTS = (
    "", " ", "    ", "\t", " \t", "\0", " \0 ", "a\0b", "\u00a0", "\u200b", "\r\n", "\x01\x1f\x7f", "\u202eabc",
    "e\u0301\u0301", "\ud83d", "\udc00x", "\N{PILE OF POO}", "\ufeff", "\ufffe", "İ", "12", "-0", "1e5", "null", "true",
    "{}", "[1]", "'", '"', "\\", "direct", "unknown", "u1", *_HUGE,
)  # fmt: skip
_PAGES = ("", "\0", "?", "/a", "/\u202e", "/a?b=c", "unknown", " ", *_HUGE)
_REFERRALS = (
    "", "http://", "https://EXAMPLE.org/x", "://x", "//host/x", "http:///x", "?", "#", "/", ":", "a:b", "http://[::1]:80/",
    "http://ann@host", " http://x", "http://\0", "HTTP://İSTANBUL", "http:// ", "\n", "android-app://com.x", *_HUGE,
)  # fmt: skip
_TIMES = (
    "2000-01-01T00:00:00Z", "2000-01-01T00:30+00:30", "1999-12-31T23:59:59.999999Z", "1999-12-31T23:59:59-00:01",
    "2000-01-01T18:00:00+18:00", "2000-02-29T23:59:59.999999999Z", "2024-12-31T23:59:59,5-18", "2025-12-29T00:00Z",
    "2026-01-31T06:05:00Z", "2026-01-31T06:05:00.000001Z", "2026-01-31T07:05:00Z", "2026-01-31T07:05:00.000001Z",
    "2026-02-01T01:05:00+18:00", "2026-01-31T23:59:59+18:00", "2026-01-30T24:00:00Z", "2026-01-31T05:10:60Z",
    "", " ", "1769836200",
)  # fmt: skip
_ANCIENT = ("0000-01-01T00:00Z", "0001-01-01T00:00:00+18:00", "9999-12-31T23:59:59-18:00", "1582-10-10T00:00:00Z")

_PIECES = (
    '"', "{", "}", "[", "]", ",", ":", ";", "\\", " ", "\r", "0", "-1", "1e999", "null", "true", '""', "}{", "é",
    "\\ud83d", "\\u0000", "\0", "\x0b", "\ufeff", "\u2028", "[" * 600, '"id"', '"page":', "Z", "NaN", "b" * 2000,
)  # fmt: skip

texts = st.sampled_from(_TEXTS) | st.text(max_size=12)
values = texts | st.sampled_from([None, ABSENT, True, 0, -1.5, 10**30, [], {}, ["a"], {"a": None}])
times = st.sampled_from(_TIMES)
instants = st.sampled_from([*_ANCIENT, *_TIMES]) | values
_ODDITIES: dict[str, st.SearchStrategy[Any]] = {
    "visit_id": values,
    "user_id": values,
    "event_time": times,
    "page": st.sampled_from(_PAGES) | values,
    "keep_private": st.sampled_from([ABSENT, None, True, "true", 1]),
    "context": st.sampled_from([ABSENT, None, {}, "none", []]),
    "context.referral": st.sampled_from(_REFERRALS) | values,
    "context.ad_id": values,
    "context.user": st.sampled_from([ABSENT, None, {}, 1]),
    "context.user.login": values,
    "context.user.ip": values,
    "context.user.connected_since": instants,
    "context.technical": st.sampled_from([ABSENT, None, {}, []]),
    **{
        f"context.technical.{name}": values
        for name in ("browser", "browser_version", "network_type", "device_type", "device_version")
    },
}


_EACH = {
    "visit_id": _TEXTS,
    "user_id": _TEXTS,
    "page": (*_PAGES, *_TEXTS),
    "event_time": _TIMES,
    "context.referral": (*_REFERRALS, *_TEXTS),
    "context.technical.browser": _TEXTS,
    "context.technical.device_type": _TEXTS,
}


_EACH_AD = {"visit_id": _TEXTS, "ad_id": _TEXTS, "page": (*_PAGES, *_TEXTS), "campaign": _TEXTS, "display_time": _TIMES}


def each_oddity() -> list[bytes]:
    """List visit events that are odd in one field, one for each odd value of it."""
    odd = [(path, value) for path, values in _EACH.items() for value in values]
    return [_line(_event(number), {path: value}) for number, (path, value) in enumerate(odd, start=1000)]


@st.composite
def events(draw: st.DrawFn) -> bytes:
    """Draw a visit event, odd in at most three of its fields."""
    event = _event(draw(st.integers(0, 40)))
    event["event_time"] = draw(st.sampled_from([event["event_time"], "2026-01-31T05:50:00.25Z", "2026-01-30T23:00Z"]))
    paths = draw(st.lists(st.sampled_from(sorted(_ODDITIES)), max_size=3, unique=True))
    return _line(event, {path: draw(_ODDITIES[path]) for path in paths})


def _event(number: int) -> dict[str, Any]:
    return {
        "visit_id": f"v{number}",
        "event_time": "2026-01-31T05:10:00Z",
        "user_id": "u1",
        "keep_private": False,
        "page": "/a",
        "context": {
            "referral": "https://example.org/x",
            "user": {"ip": "10.0.0.1", "login": "ann"},
            "technical": {"browser": "Firefox", "device_type": "PC", "device_version": "1"},
        },
    }


def _line(event: dict[str, Any], changes: dict[str, Any]) -> bytes:
    for path, value in changes.items():
        _put(event, path.split("."), value)
    return json.dumps(event).encode()


def _put(event: dict[str, Any], path: list[str], value: Any) -> None:
    *parents, name = path
    for parent in parents:
        if not isinstance(event.get(parent), dict):
            return
        event = event[parent]
    if value == ABSENT:
        event.pop(name, None)
    else:
        event[name] = value


def each_odd_display() -> list[bytes]:
    """List displayed ads that are odd in one field, one for each odd value of it."""
    odd = [(name, value) for name, values in _EACH_AD.items() for value in values]
    return [_line(_display(number), {name: value}) for number, (name, value) in enumerate(odd, start=1000)]


@st.composite
def displays(draw: st.DrawFn) -> bytes:
    """Draw a displayed ad, odd in at most two of its fields."""
    names = draw(st.lists(st.sampled_from(sorted(_EACH_AD)), max_size=2, unique=True))
    odd = {name: draw(st.sampled_from(_EACH_AD[name]) | values) for name in names}
    return _line(_display(draw(st.integers(0, 20))), odd)


def _display(number: int) -> dict[str, Any]:
    return {
        "ad_id": "ad-1",
        "page": "/a",
        "visit_id": f"v{number}",
        "display_time": "2026-01-31T05:10:00Z",
        "campaign": "spring",
    }


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Draw a line of an access log, odd in some of its fields."""
    odd = st.sampled_from(["", "-", "\0", "é\u202e", '\\"', "%00", " "]) | st.text(max_size=6)
    address = draw(odd) if draw(st.integers(0, 3)) == 3 else "10.0.0.1"
    target = draw(st.sampled_from(["/a", "", "?", "?a=b", "/a\0", "//", "*", "http://x/"]) | odd)
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:24.0) Gecko/20100101 Firefox/24.0"
    agent = draw(odd) if draw(st.integers(0, 3)) == 3 else agent
    time = draw(
        st.sampled_from(["31/Jan/2026:05:10:00 +0000", "01/Jan/2000:00:00:00 +0000", "31/Jan/2026:23:04:59 +1800"])
    )
    line = f'{address} - - [{time}] "GET {target} HTTP/1.1" 200 1 "{draw(st.just("-") | odd)}" "{agent}"'
    return line.replace("\n", " ").encode()


@st.composite
def users(draw: st.DrawFn) -> bytes:
    """Draw a line of a delivery of users, odd in some of its fields."""
    user: dict[str, Any] = {"id": f"u{draw(st.integers(0, 9))}", "login": "ann", "email": "a@example.org"}
    odd = {"id": values, "login": values, "email": values}
    odd |= dict.fromkeys(("registered_datetime", "first_connection_datetime", "last_connection_datetime"), instants)
    for name in draw(st.lists(st.sampled_from(sorted(odd)), max_size=3, unique=True)):
        _put(user, [name], draw(odd[name]))
    return json.dumps(user).encode()


@st.composite
def devices(draw: st.DrawFn) -> bytes:
    """Draw a line of a delivery of devices: values that a CSV file holds as they are, quoted or not."""
    field = st.sampled_from(["PC", "1", "", " ", '"a;b"', '""', '"', "\0", "é\u202e", "x" * 10_000]) | st.text(
        max_size=4
    )
    line = ";".join(draw(field) for _ in range(3))
    return line.replace("\n", " ").encode()


def edited(seeds: Sequence[bytes], *others: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Draw one of some lines, with some places of it replaced by other bytes."""
    pieces = st.sampled_from(_PIECES).map(str.encode) | st.binary(max_size=3)
    changes = st.lists(st.tuples(st.integers(0, 400), pieces, st.integers(0, 3)), max_size=4)

    def changed(line: bytes, changes: list[tuple[int, bytes, int]]) -> bytes:
        for at, piece, removed in changes:
            line = line[: at % (len(line) + 1)] + piece + line[at % (len(line) + 1) + removed :]
        return line

    return st.builds(changed, st.one_of(st.sampled_from(seeds), *others), changes)


def drawn(lines: st.SearchStrategy[bytes], count: int) -> list[bytes]:
    """Draw about this many lines; the same code draws the same lines."""
    found: list[bytes] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(lines)
    def collect(line: bytes) -> None:
        found.append(line)

    collect()
    return found
