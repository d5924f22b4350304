"""Clicks and displays are joined in any order, each unmatched row appears once, and the state stays bounded."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from blogdata.patterns.data_value import dynamic_joiner
from blogdata.patterns.data_value.dynamic_joiner import Side, TimedJoin

SPEC = TimedJoin(
    on=("visit", "ad"),
    left=Side(name="click", time="clicked"),
    right=Side(name="display", time="shown"),
    bound=timedelta(minutes=30),
    late=timedelta(hours=1),
)
CLICKS, DISPLAYS = (
    "visit STRING, ad STRING, clicked TIMESTAMP",
    "visit STRING, ad STRING, shown TIMESTAMP, campaign STRING",
)
START = datetime(2026, 1, 5, tzinfo=timezone.utc)
Click = tuple[str, str, datetime]
Display = tuple[str, str, datetime, str]


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def naive(time: datetime | None) -> datetime | None:
    return time and time.replace(tzinfo=None)


def expected(clicks: Sequence[Click], displays: Sequence[Display]) -> list[tuple[Any, ...]]:
    """Compute the expected rows by comparing every click with every display."""
    met: set[Display] = set()
    rows: list[tuple[Any, ...]] = []
    for visit, ad, clicked in clicks:
        found = [d for d in displays if d[:2] == (visit, ad) and timedelta(0) <= clicked - d[2] <= SPEC.bound]
        rows += [(visit, ad, naive(clicked), naive(d[2]), d[3], "both") for d in found]
        rows += [] if found else [(visit, ad, naive(clicked), None, None, "click")]
        met.update(found)
    rows += [(d[0], d[1], None, naive(d[2]), d[3], "display") for d in displays if d not in met]
    return sorted(rows, key=repr)


def got(frame: Any) -> list[tuple[Any, ...]]:
    rows = frame.select("visit", "ad", "clicked", "shown", "campaign", "side").collect()
    return sorted((tuple(row) for row in rows), key=repr)


def batch(spark: Any, clicks: Sequence[Click], displays: Sequence[Display]) -> Any:
    return dynamic_joiner.join(spark.createDataFrame(clicks, CLICKS), spark.createDataFrame(displays, DISPLAYS), SPEC)


def drawn(seed: int, days: int = 1, visits: int = 40) -> tuple[list[Click], list[Display]]:
    """Draw clicks and displays of some days: some without a partner, some with several, some on the time bound."""
    draw = random.Random(seed)
    clicks, displays = set(), set()
    for number in range(visits * days):
        key, shown = (f"v{number}", f"a{draw.randint(1, 3)}"), draw.uniform(0, 24 * 60 * days - 90)
        for _ in range(draw.choice((0, 1, 1, 2))):
            displays.add((*key, at(round(shown + draw.choice((0, 5, 40)), 2)), f"c{key[1]}"))
        for _ in range(draw.choice((0, 1, 1, 2))):
            clicks.add((*key, at(round(shown + draw.choice((-1, 0, 10, 29.99, 30, 30.01, 60)), 2))))
    return sorted(clicks), sorted(displays)


def test_a_batch_equals_a_comparison_of_everything(spark: Any) -> None:
    clicks, displays = drawn(1)
    found = got(batch(spark, clicks, displays))
    assert found == expected(clicks, displays)
    assert {row[-1] for row in found} == {"both", "click", "display"}
    partnered = dynamic_joiner.with_partner(
        spark.createDataFrame(displays, DISPLAYS), spark.createDataFrame(clicks, CLICKS), SPEC
    )
    assert partnered.count() == len(displays) - sum(row[-1] == "display" for row in found)


def test_an_inner_join_loses_what_has_no_partner(spark: Any) -> None:
    clicks, displays = drawn(2)
    inner = spark.createDataFrame(clicks, CLICKS).join(spark.createDataFrame(displays, DISPLAYS), ["visit", "ad"])
    assert inner.select("visit").distinct().count() < len({row[0] for row in (*clicks, *displays)})


class Streams:
    """Two folders of JSON files that a stream joins, one file of each per batch."""

    def __init__(self, spark: Any, folder: Path) -> None:
        spark.conf.set("spark.sql.shuffle.partitions", "1")
        self.spark, self.folder, self._landed = spark, folder, 0
        for name in ("clicks", "displays"):
            (folder / name).mkdir()

    def land(self, clicks: Sequence[Click], displays: Sequence[Display]) -> None:
        self._landed += 1
        for name, rows in (("clicks", clicks), ("displays", displays)):
            keys = [column.split()[0] for column in (CLICKS if name == "clicks" else DISPLAYS).split(", ")]
            file = self.folder / name / f"{self._landed:05d}.json"
            lines = (json.dumps(dict(zip(keys, row, strict=True)), default=datetime.isoformat) for row in rows)
            file.write_text("\n".join(lines))
            os.utime(file, (1_767_600_000 + self._landed,) * 2)

    def take_in(self) -> Any:
        """Process the available files; return the last batch's progress."""
        clicks, displays = (
            self.spark.readStream.schema(ddl).option("maxFilesPerTrigger", "1").json(str(self.folder / name))
            for name, ddl in (("clicks", CLICKS), ("displays", DISPLAYS))
        )
        writer = (
            dynamic_joiner.join(clicks, displays, SPEC)
            .writeStream.format("delta")
            .option("checkpointLocation", str(self.folder / "point"))
        )
        query = writer.trigger(availableNow=True).start(str(self.folder / "out"))
        query.awaitTermination()
        return query.recentProgress

    def rows(self) -> list[tuple[Any, ...]]:
        return got(self.spark.read.format("delta").load(str(self.folder / "out")))


def arrivals(rows: Sequence[Any], draw: random.Random, hours: int) -> list[list[Any]]:
    """Spread rows over the hours of their arrival, up to an hour late, in any order within an hour."""
    found: list[list[Any]] = [[] for _ in range(hours)]
    for row in draw.sample(rows, len(rows)):
        arrived = (row[2] - START) / timedelta(hours=1) + draw.uniform(0, 0.999)
        found[int(arrived)].append(row)
    return found


END: tuple[list[Click], list[Display]] = [("end", "a", at(100_000))], [("end", "b", at(100_000), "c")]


def test_a_stream_in_any_order_equals_the_batch(session: Any, tmp_path: Path) -> None:
    clicks, displays = drawn(3)
    streams, draw = Streams(session, tmp_path), random.Random(3)
    landed = list(zip(arrivals(clicks, draw, 26), arrivals(displays, draw, 26), strict=True))
    # Thirteen hours a batch; the stream is stopped in between and continues.
    for hours in (landed[:13], landed[13:]):
        streams.take_in()
        streams.land(*([row for hour in hours for row in hour[side]] for side in (0, 1)))
    streams.land(*END)
    streams.take_in()
    assert [row for row in streams.rows() if row[0] != "end"] == expected(clicks, displays)


def test_a_row_waits_for_its_partner_only(session: Any, tmp_path: Path) -> None:
    streams = Streams(session, tmp_path)
    streams.land([("v", "a", at(20))], [("w", "a", at(0), "c")])
    streams.land([], [("v", "a", at(0), "c")])
    streams.land([("x", "a", at(91))], [])
    streams.take_in()
    assert [row[-1] for row in streams.rows()] == ["both"]
    # Once both watermarks are an hour and a half after the display, no partner can arrive: later rows are dropped.
    for time in (92, 93):
        streams.land([("x", "a", at(time))], [("y", "a", at(time), "c")])
    streams.land([("w", "a", at(1))], [])
    progress = streams.take_in()
    assert sorted(row[-1] for row in streams.rows()) == ["both", "display"]
    assert sum(each["stateOperators"][0]["numRowsDroppedByWatermark"] for each in progress) == 1


@pytest.mark.campaign
@pytest.mark.parametrize("days", [3, 30])
def test_the_state_does_not_grow_with_days(session: Any, tmp_path: Path, days: int) -> None:
    streams = Streams(session, tmp_path)
    clicks, displays = drawn(4)
    for day in range(days):
        since = timedelta(days=day)
        streams.land(
            [(visit, ad, time + since) for visit, ad, time in clicks],
            [(visit, ad, time + since, campaign) for visit, ad, time, campaign in displays],
        )
    held = {each["batchId"]: each["stateOperators"][0]["numRowsTotal"] for each in streams.take_in()}
    in_order = [rows for _, rows in sorted(held.items())]
    # Each batch of a day keeps that day in state; the next batch emits its expired rows. The first batch has none
    # before it.
    assert set(in_order[1:days]) == {in_order[1]}
    assert in_order[-1] < in_order[1] <= 2 * len(clicks + displays)
    assert len(streams.rows()) > (days - 1) * len(expected(clicks, displays))
