"""An event is authenticated, parsed and stored once; a refused event is stored with its reason."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogdata.errors import ConfigurationError
from blogdata.patterns.ingestion import event_inbox
from blogdata.patterns.ingestion.event_inbox import Inbox, InboxUnusable
from blogdata.patterns.ingestion.external_trigger import Trigger, authenticated, context, pause
from blogdata.patterns.ingestion.trigger_event import (
    MOST_BYTES,
    EventRefused,
    Forged,
    IdReused,
    Malformed,
    NotPermitted,
    TooLarge,
    Undeclared,
    WrongTime,
    parse,
)
from toy_trigger import EVENT, NOW, TOKENS, call, event, notification


def test_an_event_waits_with_its_context(trigger: Trigger) -> None:
    call(trigger, event(payload="s3://shop/releases/42", span="2026-01-05T03..2026-01-06"))
    (entry,) = trigger.inbox.waiting()
    assert entry.run_key == "shop/42"
    assert entry.event.window == (NOW.replace(hour=3), NOW.replace(day=6, hour=0))
    assert context(entry) == {
        "id": "42",
        "source": "shop",
        "time": "2026-01-05T09:59:00+00:00",
        "received": "2026-01-05T10:00:00.000+00:00",
        "channel": "http",
        "origin": "192.0.2.1",
        "version": "1.0",
        "digest": entry.event.digest,
        "payload": "s3://shop/releases/42",
    }


def test_an_event_delivered_twice_is_one_entry(trigger: Trigger) -> None:
    first = call(trigger, event())
    spaced = json.dumps(dict(reversed(EVENT.items())), indent=4).encode()
    entry, known = trigger.take(notification(spaced, token=TOKENS["shop"], at=NOW + timedelta(minutes=1)))
    assert (entry, known) == (first, True)
    assert len(trigger.inbox.waiting()) == 1


def test_a_known_event_is_known_however_old(trigger: Trigger) -> None:
    first = call(trigger, event())
    assert call(trigger, event(), at=NOW + timedelta(days=30)) == first


def test_one_id_of_two_sources_is_two_events(trigger: Trigger) -> None:
    call(trigger, event())
    call(trigger, event(source="ads", datasets=["raw.ads"]), token=TOKENS["ads"])
    assert [entry.run_key for entry in trigger.inbox.waiting()] == ["shop/42", "ads/42"]


def test_another_event_under_a_used_id_is_refused(trigger: Trigger) -> None:
    call(trigger, event())
    with pytest.raises(IdReused):
        call(trigger, event(datasets=["raw.ads"]))
    assert [entry.event.datasets for entry in trigger.inbox.waiting()] == [("raw.items",)]


@pytest.mark.parametrize("token", [None, "", "a" * 31, "a" * 33, "A" * 32, "ä" * 32])
def test_an_event_without_a_valid_token_is_refused(trigger: Trigger, token: str | None) -> None:
    with pytest.raises(Forged):
        call(trigger, event(), token=token)
    assert trigger.inbox.waiting() == []
    (refusal,) = trigger.inbox.refusals(10)
    assert (refusal.kind, refusal.sender, refusal.body) == ("forged", None, None)


def test_a_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []

    def differ(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return False

    monkeypatch.setattr("hmac.compare_digest", differ)
    with pytest.raises(Forged):
        authenticated("short", TOKENS)
    assert compared == [(32, 32)] * len(TOKENS), "every token is compared, padded to one length"


@pytest.mark.parametrize(
    ("changes", "token", "kind"),
    [
        ({"source": "ads", "datasets": ["raw.ads"]}, "shop", NotPermitted),
        ({"source": "nobody"}, "shop", NotPermitted),
        ({"source": "partner"}, "shop", NotPermitted),
        ({"source": "ads"}, "ads", NotPermitted),
        ({"source": "ads", "datasets": None, "span": "2026-01-05..2026-01-06"}, "ads", NotPermitted),
        ({"datasets": ["raw.secrets"]}, "shop", Undeclared),
        ({"time": "2026-01-04T09:00:00Z"}, "shop", WrongTime),
        ({"time": "2026-01-05T10:06:00Z"}, "shop", WrongTime),
    ],
)
def test_a_request_beyond_the_declared_is_refused(
    trigger: Trigger, changes: dict[str, Any], token: str, kind: type[EventRefused]
) -> None:
    with pytest.raises(kind):
        call(trigger, event(**changes), token=TOKENS[token])
    assert trigger.inbox.waiting() == []
    (refusal,) = trigger.inbox.refusals(10)
    assert (refusal.kind, refusal.sender, refusal.name) == (kind.kind, token, "refused-1")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"id": "42"}',
        b"[" * 60_000,
        b'{"id": "42", "id": "43", "source": "shop", "time": "2026-01-05T09:59:00Z", "datasets": ["raw.items"]}',
        event(id=""),
        event(id=42),
        event(id="4 2"),
        event(id="4\n2"),
        event(id="x" * 201),
        event(source="../shop"),
        event(time="2026-01-05T09:59:00"),
        event(time="2026-02-30T09:59:00Z"),
        event(time="0001-01-01T00:00:00+14:00"),
        event(time=1767607140),
        event(payload="a\nb"),
        event(payload="ä" * 1001),
        event(payload="\ud800"),
        event(payload={"path": "x"}),
        event(datasets="raw.items"),
        event(datasets=["raw.items\n"]),
        event(datasets=[1]),
        event(datasets=[f"raw.t{number}" for number in range(101)]),
        event(datasets=[]),
        event(span=".."),
        event(span="2026-01-05"),
        event(span="2026-01-06..2026-01-05"),
        event(span="2026-01-05T3..2026-01-06"),
        event(span=["2026-01-05", "2026-01-06"]),
        event(dataset=["raw.items"]),
        event(command="rm -rf /"),
    ],
)
def test_a_malformed_event_is_refused(trigger: Trigger, body: Any) -> None:
    with pytest.raises(Malformed):
        call(trigger, body)
    (refusal,) = trigger.inbox.refusals(10)
    assert refusal.kind == "malformed"
    assert refusal.body is not None


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_any_json_is_an_event_or_malformed(value: Any) -> None:
    for body in (value, {**EVENT, "id": value}, {**EVENT, "time": value}, {**EVENT, "span": value}):
        try:
            parsed = parse(json.dumps(body).encode())
        except Malformed:
            continue
        assert parse(parsed.text().encode()) == parsed


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        parse(body)


@pytest.mark.parametrize("time", ["2026-01-05T10:00:00.1234567+01:00", "2026-01-05t09:00:00.123456z"])
def test_a_time_is_read_with_its_zone(time: str) -> None:
    found = parse(json.dumps(event(time=time)).encode()).time
    assert found == datetime(2026, 1, 5, 9, 0, 0, 123456, tzinfo=timezone.utc)


def test_a_large_event_is_refused_unread(trigger: Trigger) -> None:
    with pytest.raises(TooLarge):
        call(trigger, event(payload="x" * MOST_BYTES))
    assert [(refusal.kind, refusal.body) for refusal in trigger.inbox.refusals(10)] == [("too large", None)]


def test_forgeries_displace_no_other_refusal(trigger: Trigger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_inbox, "_KEPT_FORGERIES", 3)
    monkeypatch.setattr(event_inbox, "_KEPT_REFUSALS", 2)
    with pytest.raises(Malformed):
        call(trigger, b"0")
    for _ in range(5):
        with pytest.raises(Forged):
            call(trigger, event(), token="no")
    assert [refusal.kind for refusal in trigger.inbox.refusals(100)] == ["malformed", "forged", "forged", "forged"]
    for number in (1, 2):
        with pytest.raises(Malformed):
            call(trigger, b"%d" % number)
    kept = trigger.inbox.refusals(100)
    assert [refusal.body for refusal in kept] == [None, None, None, b"1", b"2"]


def test_an_inbox_that_cannot_be_used_takes_nothing(trigger: Trigger) -> None:
    trigger.inbox.path.write_bytes(b"no database, and long enough to be taken for a damaged one" * 10)
    with pytest.raises(InboxUnusable):
        call(trigger, event())


def test_a_locked_inbox_takes_nothing(trigger: Trigger, monkeypatch: pytest.MonkeyPatch) -> None:
    call(trigger, event())
    with sqlite3.connect(trigger.inbox.path) as other:
        monkeypatch.setattr(Inbox, "busy_seconds", 0.05)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InboxUnusable, match="locked"):
            call(trigger, event(id="43"))
        other.rollback()
    call(trigger, event(id="43"))
    assert len(trigger.inbox.waiting()) == 2


def test_a_retried_event_gets_another_run_key(trigger: Trigger) -> None:
    entry = call(trigger, event())
    trigger.inbox.requested(entry, next_try=9e9)
    trigger.inbox.started(entry, "run-1")
    assert trigger.inbox.waiting() == []
    again = trigger.retry("42", NOW)
    assert (again.run_key, again.state, again.tries, again.run_id) == ("shop/42, 2", "waiting", 0, None)
    assert context(again)["run_number"] == "2"


def test_a_failed_event_keeps_its_run_key(trigger: Trigger) -> None:
    entry = call(trigger, event())
    trigger.inbox.failed(entry, "no daemon")
    assert trigger.inbox.waiting() == []
    assert [(one.state, one.reason) for one in trigger.inbox.newest(1)] == [("failed", "no daemon")]
    assert trigger.retry("shop/42", NOW).run_key == "shop/42", "the run of an earlier request may be found later"


def test_a_late_note_does_not_end_a_retry(trigger: Trigger) -> None:
    entry = call(trigger, event())
    trigger.inbox.started(entry, "run-1")
    trigger.retry("shop/42", NOW)
    trigger.inbox.started(entry, "run-1")
    assert len(trigger.inbox.waiting()) == 1


def test_a_refused_event_is_accepted_by_a_person(trigger: Trigger) -> None:
    with pytest.raises(WrongTime):
        call(trigger, event(time="2026-01-01T00:00:00Z"))
    assert trigger.retry("refused-1", NOW).event.id == "42"
    assert (len(trigger.inbox.waiting()), trigger.inbox.refusals(10)) == (1, [])


@pytest.mark.parametrize(
    ("body", "token", "kind"),
    [(event(), None, Forged), (b"{", "shop", Malformed), (event(source="ads"), "shop", NotPermitted)],
)
def test_a_person_accepts_nothing_forged_or_malformed(
    trigger: Trigger, body: Any, token: str | None, kind: type[EventRefused]
) -> None:
    attempts: tuple[Callable[[], object], ...] = (
        lambda: call(trigger, body, token=token and TOKENS[token]),
        lambda: trigger.retry("refused-1", NOW),
    )
    for attempt in attempts:
        with pytest.raises(kind):
            attempt()
    assert trigger.inbox.waiting() == []


def test_an_unknown_or_ambiguous_name_is_refused(trigger: Trigger) -> None:
    for name in ("42", "refused-1"):
        with pytest.raises(ConfigurationError, match="no event"):
            trigger.retry(name, NOW)
    call(trigger, event())
    call(trigger, event(source="ads", datasets=["raw.ads"]), token=TOKENS["ads"])
    with pytest.raises(ConfigurationError, match="several sources"):
        trigger.retry("42", NOW)
    assert trigger.retry("ads/42", NOW).event.source == "ads"


def test_pauses_grow_and_stay_below_an_hour() -> None:
    pauses = [pause(tries) for tries in range(1, 9)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (30, 1920)
