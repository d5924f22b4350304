import random
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from blogdata.patterns.data_value import dynamic_joiner
from blogdata.patterns.data_value.dynamic_joiner import Side, TimedJoin
from patterns.json_streams import Stream

SPEC = TimedJoin(
    on=("visit", "ad"),
    left=Side(name="click", time="clicked"),
    right=Side(name="display", time="shown"),
    bound=timedelta(minutes=30),
    late=timedelta(hours=1),
)
CLICKS = "visit STRING, ad STRING, clicked TIMESTAMP"
DISPLAYS = "visit STRING, ad STRING, shown TIMESTAMP, campaign STRING"
START = datetime(2026, 1, 5, tzinfo=timezone.utc)
Click = tuple[str, str, datetime]
Display = tuple[str, str, datetime, str]


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def naive(time: datetime | None) -> datetime | None:
    return time and time.replace(tzinfo=None)


def expected(clicks: Sequence[Click], displays: Sequence[Display]) -> list[tuple[Any, ...]]:
    met: set[Display] = set()
    rows: list[tuple[Any, ...]] = []
    for visit, ad, clicked in clicks:
        partners = [d for d in displays if d[:2] == (visit, ad) and timedelta(0) <= clicked - d[2] <= SPEC.bound]
        rows += [(visit, ad, naive(clicked), naive(d[2]), d[3], "both") for d in partners]
        rows += [] if partners else [(visit, ad, naive(clicked), None, None, "click")]
        met.update(partners)
    rows += [(d[0], d[1], None, naive(d[2]), d[3], "display") for d in displays if d not in met]
    return sorted(rows, key=repr)


def joined(frame: Any) -> list[tuple[Any, ...]]:
    rows = frame.select("visit", "ad", "clicked", "shown", "campaign", "side").collect()
    return sorted((tuple(row) for row in rows), key=repr)


def drawn(seed: int, visits: int = 40) -> tuple[list[Click], list[Display]]:
    """Draw clicks and displays of a day: some without a partner, some with several, some on the time bound."""
    draw = random.Random(seed)
    clicks, displays = set(), set()
    for number in range(visits):
        key, shown = (f"v{number}", f"a{draw.randint(1, 3)}"), draw.uniform(0, 24 * 60 - 90)
        for _ in range(draw.choice((0, 1, 1, 2))):
            displays.add((*key, at(round(shown + draw.choice((0, 5, 40)), 2)), f"c{key[1]}"))
        for _ in range(draw.choice((0, 1, 1, 2))):
            clicks.add((*key, at(round(shown + draw.choice((-1, 0, 10, 29.99, 30, 30.01, 60)), 2))))
    return sorted(clicks), sorted(displays)


def test_a_batch_equals_a_comparison_of_everything(spark: Any) -> None:
    clicks, displays = drawn(1)
    left, right = spark.createDataFrame(clicks, CLICKS), spark.createDataFrame(displays, DISPLAYS)
    rows = joined(dynamic_joiner.join(left, right, SPEC))
    assert rows == expected(clicks, displays)
    assert {row[-1] for row in rows} == {"both", "click", "display"}
    alone = sum(row[-1] == "display" for row in rows)
    assert dynamic_joiner.with_partner(right, left, SPEC).count() == len(displays) - alone


def stream(spark: Any, folder: Path) -> Stream:
    inputs = {"clicks": CLICKS, "displays": DISPLAYS}
    return Stream(spark, folder, inputs, lambda clicks, displays: dynamic_joiner.join(clicks, displays, SPEC))


def arrivals(rows: Sequence[Any], draw: random.Random) -> tuple[list[Any], list[Any]]:
    """Divide a day's rows into two batches of thirteen hours, each row up to an hour late, in any order."""
    batches: tuple[list[Any], list[Any]] = ([], [])
    for row in draw.sample(rows, len(rows)):
        hour = (row[2] - START) / timedelta(hours=1) + draw.uniform(0, 0.999)
        batches[hour >= 13].append(row)
    return batches


def test_a_stream_in_any_order_equals_the_batch(session: Any, tmp_path: Path) -> None:
    clicks, displays = drawn(3)
    streamed, draw = stream(session, tmp_path), random.Random(3)
    first, second = zip(arrivals(clicks, draw), arrivals(displays, draw), strict=True)
    streamed.land(*first)
    # The stream is stopped and continues.
    streamed.take_in()
    streamed.land(*second)
    streamed.land([("end", "a", at(100_000))], [("end", "b", at(100_000), "c")])
    progress = streamed.take_in()
    assert [row for row in joined(streamed.out()) if row[0] != "end"] == expected(clicks, displays)
    assert progress[-1]["stateOperators"][0]["numRowsTotal"] == 2, "all other rows have left the state"


@pytest.mark.campaign
def test_a_row_waits_for_its_partner_only(session: Any, tmp_path: Path) -> None:
    streamed = stream(session, tmp_path)
    streamed.land([("v", "a", at(20))], [("w", "a", at(0), "c")])
    streamed.land([("x", "a", at(91))], [("v", "a", at(0), "c")])
    streamed.take_in()
    assert [row[-1] for row in joined(streamed.out())] == ["both"]
    # Once both watermarks are an hour and a half after the display, no partner can arrive: later rows are dropped.
    # The batch that passes the watermark lets the display go; only the one behind it drops what comes late.
    for time in (92, 93):
        streamed.land([("x", "a", at(time))], [("y", "a", at(time), "c")])
    streamed.land([("w", "a", at(1))], [])
    progress = streamed.take_in()
    assert sorted(row[-1] for row in joined(streamed.out())) == ["both", "display"]
    assert sum(batch["stateOperators"][0]["numRowsDroppedByWatermark"] for batch in progress) == 1
