"""Every line that a feed can contain gets exactly the right reasons."""

from __future__ import annotations

import json
from typing import Any

import pytest

import oracle
from assets.bronze import visit_lines
from lineage.odd_lines import drawn, edited, events

LINES = visit_lines.VisitLines()
HOUR = "2026-01-31T05"


def event(**changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "visit_id": "v1",
        "event_time": "2026-01-31T05:10:00.250Z",
        "user_id": "u1",
        "keep_private": False,
        "page": "/home",
        "context": {
            "referral": "https://example.org",
            "ad_id": None,
            "user": {"ip": "10.0.0.1", "login": "ann", "connected_since": "2026-01-30T08:00:00+01:00"},
            "technical": {"browser": "Firefox", "browser_version": "20.1"},
        },
    }
    return {name: value for name, value in {**whole, **changes}.items() if value != "ABSENT"}


def line(**changes: Any) -> str:
    return json.dumps(event(**changes), ensure_ascii=False)


GOOD = line()

VALID = {
    "a whole event": GOOD,
    "white space around": f" \t{GOOD} \r",
    "unknown fields": line(extra={"a": [1, {"b": None}]}, __end="."),
    "no privacy answer": line(keep_private="ABSENT"),
    "empty context": line(context={}),
    "numbers as text are texts": line(visit_id="12", user_id="1e5", page="true"),
    "identifiers of what is seen nowhere, and is no space": line(visit_id="\t", user_id="\0"),
    "an empty page": line(page=""),
    "braces in texts": line(page='}{ } , { "'),
    "escaped keys": GOOD.replace('"user_id"', '"user\\u005fid"'),
    "the last of two keys counts": '{"user_id": 5,' + GOOD[1:],
    "the very end of tolerance": line(event_time="2026-01-31T06:05:00Z"),
    "first plausible instant": line(event_time="2000-01-01T00:00:00Z"),
    "numbers too long for the reader where no field is": GOOD[:-1] + ',"x":1e200000,"y":' + "1" * 5000 + "}",
    "deep nesting": line(deep=json.loads("[" * 500 + "]" * 500)),
    "just small enough": GOOD[:-1] + ',"x":"' + "x" * (1_048_576 - len(GOOD.encode()) - 7) + '"}',
    "astral plane": line(page="/\N{PILE OF POO}/é"),
}

REJECTED: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", "empty_line"),
    "invalid bytes": (GOOD.encode().replace(b"/home", b"/caf\xe9\xff"), "not_utf8"),
    "overlong encoding": (GOOD.encode().replace(b"/home", b"/\xc0\xaf"), "not_utf8"),
    "five megabytes": (GOOD[:-1] + ',"x":"' + "x" * 5_000_000 + '"}', "too_large"),
    "one byte too many": (GOOD[:-1] + ',"x":"' + "x" * (1_048_577 - len(GOOD.encode()) - 7) + '"}', "too_large"),
    "too large for its bytes to matter": (b"\xff" * 1_048_577, "too_large"),
    "cut in the middle": (GOOD[:60], "truncated"),
    "cut after the first quote": ('{"', "truncated"),
    "a whole event, then a cut one": (GOOD + GOOD[:30], "truncated"),
    "cut with an inner brace last": (GOOD[:-1], "not_json"),
    "two events": (GOOD + GOOD, "not_json"),
    "an object closed twice": (GOOD + "}", "not_json"),
    "an array": (f"[{GOOD}]", "not_json"),
    "deep nesting in a cut line": (GOOD[:-1] + ',"x":' + "[" * 1500, "truncated"),
    "deep nesting beside another object": ('{"x":' + "[" * 1500 + "]" * 1500 + "}{}", "not_json"),
    "single quotes": ("{'visit_id': 'x'}", "not_json"),
    "not a number": (GOOD[:-1] + ',"x":NaN}', "not_json"),
    "byte order mark": ("\ufeff" + GOOD, "not_json"),
    "an error inside a string whose rest happens to parse": (GOOD.replace('/home"', "/ho\t"), "not_json"),
    "nesting beyond the parser": (GOOD[:-1] + ',"x":' + "[" * 1500 + "]" * 1500 + "}", "not_json"),
    "nothing in it": (
        "{}",
        "missing_field:visit_id missing_field:event_time missing_field:user_id missing_field:page",
    ),
    "case matters": (GOOD.replace('"page"', '"Page"'), "missing_field:page"),
    "the last of two keys is a number": (GOOD[:-1] + ',"user_id":5}', "wrong_type:user_id"),
    "blank visit and user": (line(visit_id=" ", user_id="    "), "missing_field:visit_id missing_field:user_id"),
    "an escaped space for a user": (GOOD.replace('"u1"', '"\\u0020"'), "missing_field:user_id"),
    "empty among other faults": (line(visit_id="", page=5), "missing_field:visit_id wrong_type:page"),
    "half a surrogate pair": (GOOD.replace("/home", "/\\ud83d"), "wrong_type:page"),
    "text for privacy": (line(keep_private="true"), "wrong_type:keep_private"),
    "escaped privacy": (
        GOOD.replace('"keep_private": false', '"keep\\u005fprivate": "no"'),
        "wrong_type:keep_private",
    ),
    "time without offset": (line(event_time="2026-01-31T05:10:00"), "invalid_time:event_time"),
    "the epoch": (line(event_time="1970-01-01T00:00:00Z"), "impossible_time"),
    "a microsecond after tolerance": (line(event_time="2026-01-31T06:05:00.000001Z"), "impossible_time"),
    "all reasons together": (
        line(
            visit_id=None,
            user_id=7,
            page="ABSENT",
            event_time="1970-01-01T00:00:00Z",
            keep_private="x",
            context={"user": {"connected_since": "?"}, "technical": "x"},
        ),
        "missing_field:visit_id wrong_type:user_id missing_field:page wrong_type:keep_private "
        "wrong_type:context.technical invalid_time:context.user.connected_since impossible_time",
    ),
}


def read(line: str | bytes, file: str = "visits/a.json") -> dict[str, Any]:
    raw = line if isinstance(line, bytes) else line.encode()
    return dict(zip(LINES.names, LINES.of_file(file, HOUR)(0, raw), strict=True))


def test_valid_lines_have_no_reason_and_a_time() -> None:
    rows = {name: read(text) for name, text in VALID.items()}
    assert {name: row["reasons"] for name, row in rows.items()} == dict.fromkeys(VALID, ())
    assert all(row["event_time"] is not None and row["event_hour"] is not None for row in rows.values())
    assert all(row["filtered_by"] is None for row in rows.values())
    assert rows["no privacy answer"]["keep_private"] is True


def test_rejected_lines_have_all_reasons_and_nothing_else() -> None:
    rows = {name: read(text) for name, (text, _) in REJECTED.items()}
    assert {name: list(row.pop("reasons")) for name, row in rows.items()} == {
        name: reasons.split() for name, (_, reasons) in REJECTED.items()
    }
    assert {(name, value) for row in rows.values() for name, value in row.items() if value} == {("format", "json")}


@pytest.mark.parametrize("value", [["192.0.2.7"], {"n": "bo"}, 42, 1.5, True])
@pytest.mark.parametrize(
    "path", ["ad_id", "referral", "user.ip", "user.login", "technical.browser", "technical.device_type"]
)
def test_an_optional_text_that_is_none_is_named(path: str, value: object) -> None:
    above, _, name = path.rpartition(".")
    row = read(line(context={above: {name: value}} if above else {name: value}))
    assert row["reasons"] == (f"wrong_type:context.{path}",)


def test_a_time_has_the_hour_it_is_in_whichever_lines_came_before() -> None:
    times = ["06:04:59", "05:00:00", "04:59:59", "05:59:59.999999", "06:00:00", "00:00:00", "06:05:00"]
    of_line = LINES.of_file("visits/a.json", HOUR)
    rows = [of_line(0, line(event_time=f"2026-01-31T{time}Z").encode()) for time in times]
    assert [row[LINES.names.index("event_hour")] for row in rows] == [f"2026-01-31T{time[:2]}" for time in times]


def test_hundreds_of_mutated_lines_get_the_oracles_verdict() -> None:
    seeds = [GOOD, GOOD + GOOD, line(context=None), line(keep_private=None), '{"a":1},{"b":[{}]}']
    lines = drawn(edited([seed.encode() for seed in seeds]) | events(), 300)
    expected = [oracle.judge_json(raw, HOUR) for raw in lines]
    for raw, verdict in zip(lines, expected, strict=True):
        row = read(raw)
        assert (sorted(row["reasons"]), row["event_time"]) == (sorted(verdict.reasons), verdict.time), raw
    assert sum(not verdict.reasons for verdict in expected) > 30
    assert len({reason for verdict in expected for reason in verdict.reasons}) > 12


def test_a_deletion_has_what_tells_which_event_it_deletes() -> None:
    raw = line(ingestion_time="2026-01-31T05:00:00Z", is_deleted=True).encode()
    found = LINES.of_file("visits/legacy_visits-1.json", HOUR)(0, raw)
    row = dict(zip(LINES.names, found, strict=True))
    known = {name for name, value in row.items() if value is not None and name not in ("format", "reasons")}
    assert known == {"visit_id", "event_time", "event_hour", "page", "filtered_by"}
