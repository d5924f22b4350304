"""A day with half of its rows is refused where the contract asks, before any reader sees it.

Pattern: Skew Detector.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from blogdata.lake.commit import Account, Commit
from blogdata.lake.lake import Lake
from blogdata.orchestration.step import Upstream
from blogdata.publish import refused
from blogdata.publish.audit import guard_of, warnings
from blogdata.publish.watch import VOLUME
from blogdata.publish.write_faults import AuditFailed
from idempotency.executing import step
from quality.contracts import CONTRACTS

PAGES = CONTRACTS["gold.page_stats"]
GUARD = guard_of(PAGES.dataset, VOLUME)
BEGIN = date(2026, 1, 5)
BEFORE = {str(BEGIN + timedelta(days=day)): 6_000 if day % 7 > 4 else 10_000 for day in range(28)}
"""Four weeks; on weekends fewer people read."""
MONDAY, TUESDAY, SATURDAY = "2026-02-02", "2026-02-03", "2026-02-07"


class Days:
    """Days of page views, published as a run does."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.root = spark, root
        self.lake = Lake(root=str(root))

    def publish(self, rows: Mapping[str, int], *, hours: int = 24, **more: Any) -> Commit:
        values = [(day, "/a", count, count, count, 1.0, hours) for day, count in rows.items()]
        columns = ", ".join(f"{column.name} {column.type}" for column in PAGES.columns)
        frame = self.spark.createDataFrame(values, columns)
        run = f"{min(rows)}-{sum(rows.values())}-{hours}-{len(more)}"
        one = step(self.spark, self.root, PAGES, *rows, run=run, **more)
        accounts = {day: Account(rows_in=count) for day, count in rows.items()}
        return one.publish(frame, Upstream(accounts=accounts))[PAGES.dataset]

    def shown(self) -> dict[str, int]:
        """Map each day that readers see to its page views, without the four weeks."""
        table = self.lake.columns(PAGES.dataset, ("event_date", "events"), since=MONDAY).to_pydict()
        return dict(sorted(zip(table["event_date"], table["events"], strict=True)))


@pytest.fixture(scope="module")
def four_weeks(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with the four weeks."""
    root = tmp_path_factory.mktemp("weeks") / "lake"
    root.mkdir()
    Days(spark, root).publish(BEFORE)
    return root


@pytest.fixture
def days(spark: Any, four_weeks: Path, tmp_path: Path) -> Days:
    """A copy of it for each test."""
    return Days(spark, shutil.copytree(four_weeks, tmp_path / "weeks"))


@pytest.mark.matrix(100)
def test_a_day_with_half_of_its_rows_is_not_published(days: Days) -> None:
    with pytest.raises(AuditFailed) as failed:
        days.publish({MONDAY: 5_000, TUESDAY: 10_000})
    assert failed.value.partitions == {MONDAY}, "the run publishes the other days without it"
    assert f"{MONDAY} has 5,000 rows, 10,000 were expected" in failed.value.what
    assert f"--accept {GUARD}" in failed.value.next_step
    assert [*refused.kept(days.lake)] == [refused.name_of(PAGES.dataset, [MONDAY])], "it is kept to be looked at"
    days.publish({TUESDAY: 10_000})
    assert days.shown() == {TUESDAY: 10_000}
    days.publish({MONDAY: 9_000})
    assert days.shown() == {MONDAY: 9_000, TUESDAY: 10_000}


@pytest.mark.matrix(100)
def test_a_person_publishes_it_all_the_same(days: Days) -> None:
    commit = days.publish({MONDAY: 5_000}, accepted={GUARD})
    assert days.shown() == {MONDAY: 5_000}
    assert warnings(commit.entries[MONDAY]) == [VOLUME]
