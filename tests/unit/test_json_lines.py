"""Whatever a line contains, it is a row or has reasons; what a producer wrote in it is what is read."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from assets.bronze.ad_lines import AdLines
from assets.bronze.legacy_visits import PREFIX
from assets.bronze.reference_lines import DeviceLines, UserLines
from assets.bronze.visit_lines import VisitLines
from blogdata.landing.json_lines import iso_time
from blogdata.landing.lines import LineReader
from lineage import odd_lines
from quality.contracts.columns import CONTEXT, REQUEST

HOUR, DAY = "2026-01-31T05", "2026-01-31"
FILES: list[tuple[LineReader, str, str]] = [
    (VisitLines(), "visits/a.json", HOUR),
    (VisitLines(), f"visits/{PREFIX}-1.jsonl", HOUR),
    (VisitLines(), f"visits/{PREFIX}-untimed-1.jsonl", HOUR),
    (AdLines(), "ads/a.json", HOUR),
    (UserLines(), "users/a.json", DAY),
    (UserLines(), "users/a.csv", DAY),
    (UserLines(), "users/users_table-1.jsonl", DAY),
    (DeviceLines(), "devices/a.json", DAY),
    (DeviceLines(), "devices/a.csv", DAY),
]
NEEDED: dict[type, tuple[str, ...]] = {
    VisitLines: ("visit_id", "user_id", "event_time", "event_hour"),
    AdLines: ("visit_id", "ad_id", "display_time", "display_hour"),
    UserLines: ("id",),
    DeviceLines: ("type", "version"),
}
MORE = (b'{"a":1},{"b":[{}]}', b"id;login;email", b"")
SEEDS = [*odd_lines.each_oddity(), *odd_lines.each_odd_display(), *MORE]


@settings(max_examples=200, deadline=None)
@given(odd_lines.edited(SEEDS, odd_lines.users(), odd_lines.devices()))
def test_a_line_is_a_row_or_has_reasons(line: bytes) -> None:
    for reader, file, partition in FILES:
        row = read(reader, file, partition, line)
        reasons: tuple[str, ...] = row.pop("reasons")
        assert len(reasons) == len({*reasons})
        if not reasons:
            assert all(row[name] for name in NEEDED[type(reader)])
        elif isinstance(reader, (VisitLines, AdLines)):
            assert {name for name, value in row.items() if value is not None} <= {"format"}


def read(reader: LineReader, file: str, partition: str, line: bytes) -> dict[str, Any]:
    return dict(zip(reader.names, reader.of_file(file, partition)(1, line), strict=True))


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
identifiers = texts.filter(lambda text: bool(text.strip(" ")))
moments = st.datetimes(datetime(2000, 1, 2), datetime(2026, 1, 31, 6, 5), timezones=st.just(timezone.utc))  # noqa: DTZ001


@st.composite
def times(draw: st.DrawFn) -> tuple[str, datetime]:
    moment = draw(moments)
    offset = draw(st.integers(-18 * 60, 18 * 60))
    local = moment + timedelta(minutes=offset)
    sign, hours, minutes = "+" if offset >= 0 else "-", abs(offset) // 60, abs(offset) % 60
    zone = draw(st.sampled_from([f"{sign}{hours:02}:{minutes:02}", f"{sign}{hours:02}{minutes:02}"]))
    zone = f"{sign}{hours:02}" if not minutes and draw(st.booleans()) else zone
    zone = "Z" if not offset else zone
    digits = draw(st.integers(0, 9))
    fraction = f"{moment.microsecond:06}999"[:digits]
    text = f"{local:%Y-%m-%dT%H:%M:%S}" + (draw(st.sampled_from(".,")) + fraction if digits else "") + zone
    return text, moment.replace(microsecond=int(fraction[:6].ljust(6, "0")))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_an_event_is_read_as_it_was_written(data: st.DataObject) -> None:
    wanted: dict[str, Any] = {
        "visit_id": data.draw(identifiers),
        "user_id": data.draw(identifiers),
        "page": data.draw(texts.filter(lambda page: "?" not in page)),
        "keep_private": data.draw(st.booleans()),
    }
    context: dict[str, Any] = {"user": {}, "technical": {}}
    technical = tuple(column.name for column in CONTEXT)
    optional = {"": ("referral", "ad_id"), "user": ("ip", "login"), "technical": technical}
    for above, of_object in optional.items():
        for name in of_object:
            wanted[name] = data.draw(st.none() | texts)
            if wanted[name] is not None or data.draw(st.booleans()):
                (context[above] if above else context)[name] = wanted[name]
    text, wanted["event_time"] = data.draw(times())
    context["user"]["connected_since"], wanted["connected_since"] = data.draw(times())
    event = {name: wanted[name] for name in ("visit_id", "user_id", "page", "keep_private")}
    event |= {"event_time": text, "context": context, "unknown": data.draw(st.none() | texts | st.lists(st.integers()))}
    names = data.draw(st.permutations(sorted(event)))
    in_order = {name: event[name] for name in names}
    line = json.dumps(in_order, ensure_ascii=data.draw(st.booleans()), indent=data.draw(st.none() | st.just(0)))
    row = read(VisitLines(), "visits/a.json", HOUR, line.encode())
    hour = f"{wanted['event_time']:%Y-%m-%dT%H}"
    nothing = dict.fromkeys(("utm", "filtered_by", "crawler", *(column.name for column in REQUEST)))
    assert row == {**wanted, "event_hour": hour, "format": "json", "reasons": (), **nothing}


_OF_TIMES = "0001 2026 9999 02 12 13 29 31 T t Z z - : + . , 00 05 18 19 23 24 59 60 +18:00 +18:01 -00:00 123456789 é"


@settings(max_examples=300, deadline=None)
@given(times().map(lambda time: time[0]), st.data())
def test_a_text_is_the_time_that_the_oracle_finds(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(text)))
        piece = data.draw(st.sampled_from(["", " ", *_OF_TIMES.split()]))
        text = text[:at] + piece + text[at + data.draw(st.integers(0, 3)) :]
    assert iso_time(text) == oracle.iso_time(text)


@pytest.mark.parametrize("fraction", ["", "123456junk9", "1234567 foo 9", "１２３"])
def test_a_fraction_has_nothing_but_digits(fraction: str) -> None:
    assert iso_time(f"2026-01-31T05:00:00.{fraction}Z") is None


@pytest.mark.parametrize(
    "line",
    [
        '{"a":"' + '\\"' * 500_000,
        '{"a":"' + "[" * 1_000_000,
        "{" * 1_000_000,
        "{}" * 500_000,
        '{"page":"?' + ";utm_source=" * 80_000,
        '{"page":"' + "%25" * 300_000,
        "2" * 1_000_000,
        '"' * 1_000_000,
        ";" * 1_000_000,
    ],
    ids=lambda line: line[:12],
)
def test_a_long_line_takes_no_longer_than_its_length(line: str) -> None:
    begin = time.process_time()
    for reader, file, partition in (FILES[0], FILES[5]):
        read(reader, file, partition, line.encode())
    assert time.process_time() - begin < 60, "what grows with the square of a line takes hours"
