import random
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from blogdata.contract.partitions import Grain, key_of
from blogdata.patterns.data_value import incremental_sessionizer, stateful_sessionizer
from blogdata.patterns.data_value.incremental_sessionizer import SessionSpec
from patterns.json_streams import Stream

SPEC = SessionSpec(
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
)
ALLOWED = timedelta(minutes=1)
DDL = "visitor STRING, at TIMESTAMP, page STRING, private BOOLEAN, appended BIGINT"
COLUMNS = ("hour", "session_id", "new_pages", *SPEC.state)
START = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
HOURS = [key_of(START + timedelta(hours=number), Grain.HOUR) for number in range(8)]
"""All hours of the rows and of the ends of their sessions."""
Row = tuple[str, datetime, str, bool, int]


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def row(visitor: str, minutes: float, page: str = "/", number: int = 0) -> Row:
    return visitor, at(minutes), page, False, number


class Live(Stream):
    def __init__(self, spark: Any, folder: Path) -> None:
        super().__init__(
            spark, folder, {"in": DDL}, lambda rows: stateful_sessionizer.windows(rows, SPEC, late=ALLOWED)
        )

    def sessions(self) -> list[Any]:
        sessions = stateful_sessionizer.sessions(self.out(), SPEC, payload="private", partitions=HOURS)
        return list(sessions.collect())


def batch(spark: Any, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    sessions = incremental_sessionizer.sessionize(spark.createDataFrame(rows, DDL), None, SPEC, partitions=HOURS)
    return sorted((tuple(row) for row in sessions.where("is_completed").select(*COLUMNS).collect()), key=repr)


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
    return sorted(rows, key=lambda row: row[1:])


def test_table_5_4_sessions_end_by_their_newest_row_and_not_by_the_watermark(session: Any, tmp_path: Path) -> None:
    """Rows come at 0, 1 and 8 minutes of A, and at 15 of B; a minute of lateness is allowed."""
    live = Live(session, tmp_path)
    first = [row("A", minutes, f"/{minutes}", number) for number, minutes in enumerate((0, 1, 8))]
    live.land([*first, row("B", 15, number=4)])
    # The same page view again, then with another payload, and one appended before them.
    again = [row("B", 15, number=5), ("B", at(15), "/", True, 6), row("B", 15, number=3)]
    # The watermark is 10:14: one that ends sessions by it would have ended A at 10:10. So A grows, and X is too late.
    live.land([*again, row("A", 17.5, "/late", 9)])
    live.land([row("X", 3, "/too late", 10), row("C", 26.1, number=11)])
    live.take_in()
    # B ended at 10:25, the watermark is 10:25:06; A ends at 10:27:30.
    assert [row.visitor for row in live.out().collect()] == ["B"]
    live.land([row("C", 28.6, number=12)])
    live.take_in()
    a, b = sorted(live.sessions(), key=lambda row: str(row.visitor))
    assert (a.visitor, a.path) == ("A", ["/0", "/1", "/8", "/late"])
    assert (b.visitor, b.pages, b.lines, b.conflicts, b.appended.appended) == ("B", 1, 4, 1, 3)


@pytest.mark.campaign
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
    progress = live.take_in()
    assert sorted((tuple(session[name] for name in COLUMNS) for session in live.sessions()), key=repr) == expected
    assert progress[-1]["stateOperators"][0]["numRowsTotal"] == 1, "all other rows have left the state"
