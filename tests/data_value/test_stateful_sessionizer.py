"""Stateful Sessionizer: rows in any order give the sessions of the batch, emitted by event-time timers."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from blogdata.patterns.data_value import incremental_sessionizer, stateful_sessionizer
from blogdata.patterns.data_value.incremental_sessionizer import SessionSpec
from blogdata.patterns.data_value.stateful_sessionizer import CONFIGURATION, LiveSessions, cut, expires, merged
from blogdata.patterns.error_management.late_data_detector import StreamProgress
from blogdata.publish.partitions import Grain, key_of

SPEC = LiveSessions(
    session=SessionSpec(
        visitor="visitor",
        time="at",
        ties=("page",),
        position=("appended",),
        partition="hour",
        inactivity=timedelta(minutes=10),
        count="pages",
        first={"entry": "page"},
        last={"exit": "page"},
        ever=("private",),
        path={"path": "page"},
    ),
    late=timedelta(minutes=1),
    payload="private",
)
DDL = "visitor STRING, at TIMESTAMP, page STRING, private BOOLEAN, appended BIGINT"
COLUMNS = ("hour", "session_id", "new_pages", *SPEC.session.state)
START = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
Row = tuple[str, datetime, str, bool, int]


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def held(*minutes: float) -> list[dict[str, Any]]:
    """Return rows as they are in the state."""
    return [
        {
            "_micros": round(at(each).timestamp() * 1e6),
            "page": "/",
            "private": False,
            "appended": number,
            "duplicates": 0,
            "conflicts": 0,
        }
        for number, each in enumerate(minutes)
    ]


def row(visitor: str, minutes: float, page: str = "/", number: int = 0) -> Row:
    return visitor, at(minutes), page, False, number


TABLE = (("A", 0, 10, 10, -1), ("A", 1, 9, 11, 0), ("A", 8, 10, 18, 7), ("B", 15, 17, 25, 14))
"""Table 5-4: key, event time, expiration by watermark and by event time, and the new watermark; minutes after 10:00."""


def test_table_5_4_expirations_follow_the_newest_row_and_not_the_watermark() -> None:
    state: dict[str, list[Any]] = {"A": [], "B": []}
    progress = StreamProgress()
    for key, time, by_watermark, by_event_time, watermark in TABLE:
        # The other strategy counts from the watermark that holds when a row comes; before there is one, from the row.
        assert (progress.watermark or at(time)) + SPEC.session.inactivity == at(by_watermark)
        state[key] = merged(state[key], held(time), SPEC)
        (session,) = cut(state[key], SPEC)
        assert expires(session, SPEC) == at(by_event_time).timestamp() * 1000
        progress = progress.advance([("visits", at(time))], SPEC.late)
        assert progress.watermark == at(watermark)
    # By the watermark A is emitted after B's first row (10:10 < 10:14), while rows until 10:18 still belong to it.
    (whole,) = cut(merged(state["A"], held(17.5), SPEC), SPEC)
    assert len(whole) == 4
    assert expires(cut(state["A"], SPEC)[0], SPEC) > at(14).timestamp() * 1000 > at(10).timestamp() * 1000


@pytest.mark.parametrize(("minutes", "sizes"), [((0, 10), [2]), ((0, 10.00001), [1, 1]), ((0, 9, 18, 5), [4])])
def test_only_a_longer_silence_cuts(minutes: tuple[float, ...], sizes: list[int]) -> None:
    assert [len(session) for session in cut(merged([], held(*minutes), SPEC), SPEC)] == sizes


class Live:
    """A folder of JSON files from which a stream computes sessions, one file per batch."""

    def __init__(self, spark: Any, folder: Path) -> None:
        spark.conf.set("spark.sql.shuffle.partitions", "1")
        for name, value in CONFIGURATION.items():
            spark.conf.set(name, value)
        self.spark, self.folder, self._landed = spark, folder, 0
        (folder / "in").mkdir(parents=True)

    def land(self, rows: Sequence[Row]) -> None:
        self._landed += 1
        file = self.folder / "in" / f"{self._landed:05d}.json"
        names = [column.split()[0] for column in DDL.split(", ")]
        lines = (json.dumps(dict(zip(names, each, strict=True)), default=datetime.isoformat) for each in rows)
        file.write_text("\n".join(lines))
        os.utime(file, (1_767_600_000 + self._landed,) * 2)

    def take_in(self) -> list[Any]:
        """Process the available files; return the progress of the batches."""
        rows = self.spark.readStream.schema(DDL).option("maxFilesPerTrigger", "1").json(str(self.folder / "in"))
        found = stateful_sessionizer.sessionize(rows, SPEC)
        writer = found.writeStream.format("delta").option("checkpointLocation", str(self.folder / "point"))
        query = writer.trigger(availableNow=True).start(str(self.folder / "out"))
        query.awaitTermination()
        return list(query.recentProgress)

    def rows(self) -> list[tuple[Any, ...]]:
        found = self.spark.read.format("delta").load(str(self.folder / "out")).select(*COLUMNS).collect()
        return sorted((tuple(each) for each in found), key=repr)


def batch(spark: Any, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Compute the completed sessions with the batch counterpart."""
    first, last = min(each[1] for each in rows), max(each[1] for each in rows)
    hours = [first + timedelta(hours=each) for each in range((last - first) // timedelta(hours=1) + 2)]
    found = incremental_sessionizer.sessionize(
        spark.createDataFrame(rows, DDL),
        None,
        SPEC.session,
        partitions=[key_of(each, Grain.HOUR) for each in hours],
    )
    return sorted((tuple(each) for each in found.where("is_completed").select(*COLUMNS).collect()), key=repr)


def drawn(seed: int, minutes: float = 240, visitors: int = 12) -> list[Row]:
    """Draw rows of visitors: bursts, pauses of about the inactivity gap, and pages with equal times."""
    draw = random.Random(seed)
    rows: set[Row] = set()
    for visitor in range(visitors):
        time = draw.uniform(0, 20)
        while time < minutes:
            for page in draw.sample(("/a", "/b", "/c"), draw.choice((1, 1, 2))):
                rows.add((f"v{visitor}", at(round(time, 3)), page, draw.random() < 0.1, len(rows)))
            time += draw.choice((0.5, 3, 9.99, 10, 10.001, 14, 40))
    return sorted(rows, key=lambda each: each[1:])


def test_a_stream_in_any_order_equals_the_batch(session: Any, tmp_path: Path) -> None:
    rows = drawn(3)
    live, draw = Live(session, tmp_path), random.Random(1)
    expected = batch(session, rows)
    assert len(expected) > 20
    # Any order within a batch; a session cut off by a batch continues in the next.
    middle = draw.randint(len(rows) // 3, len(rows) // 2)
    for part in (rows[:middle], rows[middle:]):
        live.land(draw.sample(part, len(part)))
    live.land([row("end", 100_000, number=100_000)])
    live.take_in()
    assert live.rows() == expected


@pytest.mark.campaign
@pytest.mark.parametrize("days", [3, 30])
def test_the_state_does_not_grow_with_days(session: Any, tmp_path: Path, days: int) -> None:
    live = Live(session, tmp_path)
    visitors = 40
    for day in range(days):
        live.land([row(f"{day}-{each}", day * 1440 + each / 10, number=day * 1000 + each) for each in range(visitors)])
    in_order = sorted((each["batchId"], each["stateOperators"][0]["numRowsTotal"]) for each in live.take_in())
    held_rows = [rows for _, rows in in_order]
    # Each batch of a day keeps that day in state; the next batch emits its expired sessions.
    assert set(held_rows[1:days]) == {2 * visitors}
    assert held_rows[-1] == visitors
    assert len(live.rows()) == (days - 1) * visitors
