from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogdata.lake.commit import WHOLE_TABLE, Account
from blogdata.lake.lake import Lake
from blogdata.patterns.idempotency.data_overwrite import overwrite_table
from blogdata.patterns.ingestion.full_loader import MAX_MULTIPLE, MIN_SHARE, FullLoadRefused, guard
from blogdata.publish.contract import Contract
from blogdata.publish.schema import Column
from blogdata.publish.target import Provenance, RunContext, Target
from blogdata.publish.write_faults import AuditFailed
from toy import resting

DEVICES = Contract(
    dataset="bronze.things",
    description="Things",
    owner="team:platform",
    columns=(
        Column(name="id", type="BIGINT", nullable=False, description="Identifier"),
        Column(name="day", type="STRING", nullable=False, description="Day of the load"),
    ),
    key=("id",),
)


def target(lake: Lake, run: str, probe: Path | None = None) -> Target:
    context = RunContext(run_id=run, job="load", code_version="c1")
    return Target(lake=lake, contract=DEVICES, run=context, probe=str(probe) if probe else None)


def rows(spark: Any, count: int, day: str) -> Any:
    return spark.range(count).selectExpr("id", f"'{day}' AS day")


@pytest.fixture(scope="module")
def loaded(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake whose first load had a hundred rows."""
    root = tmp_path_factory.mktemp("loaded") / "lake"
    whole = Provenance(accounts={WHOLE_TABLE: Account(rows_in=100)})
    overwrite_table(rows(spark, 100, "day 0"), target(Lake(root=str(root)), "r0"), whole)
    return root


@pytest.fixture
def lake(loaded: Path, tmp_path: Path) -> Lake:
    """A copy of that lake for each test."""
    return Lake(root=str(shutil.copytree(loaded, tmp_path / "lake")))


def there(spark: Any, lake: Lake, version: int | None) -> tuple[int, set[str]]:
    found = lake.read(spark, DEVICES.dataset, version).collect()
    return len(found), {row["day"] for row in found}


def stored(lake: Lake) -> tuple[int, set[str]]:
    """Look at the newest rows without Spark."""
    found = resting(Path(lake.root), DEVICES.dataset)
    return len(found), {day for _, day in found}


@pytest.mark.parametrize(
    ("last", "now", "said"),
    [
        (100, 0, "0 rows, the last load had 100"),
        (None, 0, "0 rows"),
        (100, 49, "49 rows, less than 50% of the last load's 100"),
        (100, 301, "301 rows, more than 3 times the last load's 100"),
    ],
)
def test_an_implausible_load_is_refused_with_both_counts(last: int | None, now: int, said: str) -> None:
    with pytest.raises(FullLoadRefused, match=said) as refused:
        guard(last, now, where="bronze.things")
    assert refused.value.where == "bronze.things"
    assert "--accept size" in refused.value.next_step


@given(st.integers(1, 10**6), st.integers(0, 10**7))
def test_exactly_the_loads_outside_the_limits_are_refused(last: int, now: int) -> None:
    if now > 0 and last * MIN_SHARE <= now <= last * MAX_MULTIPLE:
        guard(last, now, where="bronze.things")
    else:
        with pytest.raises(FullLoadRefused):
            guard(last, now, where="bronze.things")


def test_the_source_account_is_held_against_the_rows(spark: Any, lake: Lake) -> None:
    whole = Provenance(accounts={WHOLE_TABLE: Account(rows_in=100)})
    with pytest.raises(AuditFailed, match=r"account\.accounted"):
        overwrite_table(rows(spark, 99, "tuesday"), target(lake, "r2"), whole)
    assert stored(lake) == (100, {"day 0"})


def test_readers_see_one_load_or_the_next_and_time_travel_the_replaced_one(spark: Any, lake: Lake) -> None:
    done, first = threading.Event(), lake.version(DEVICES.dataset)

    def loads() -> None:
        try:
            for day in (1, 2):
                overwrite_table(rows(spark, 100 + day, f"day {day}"), target(lake, f"r{day}"), Provenance())
        finally:
            done.set()

    writing = threading.Thread(target=loads)
    writing.start()
    seen = []
    while not done.wait(0.05):
        seen.append(stored(lake))
    writing.join()
    seen.append(there(spark, lake, None))
    assert all(count == 100 + int(next(iter(days)).split()[1]) and len(days) == 1 for count, days in seen)
    assert seen[-1] == (102, {"day 2"})
    assert len(seen) > 3
    assert there(spark, lake, first) == (100, {"day 0"})
