from datetime import date
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogdata.deliver.page_files import CHOICE, CSV, PARQUET, writers_of
from blogdata.patterns.data_flow.exclusive_choice import taken
from patterns.page_file_runs import DAY, Files, fault, metadata

BEFORE, AFTER = "2025-12-31", "2027-01-01"
BOTH = ["csv", "parquet"]


@pytest.mark.parametrize(
    ("day", "branches"), [(BEFORE, ["csv"]), ("2026-01-01", BOTH), ("2026-12-31", BOTH), (AFTER, ["parquet"])]
)
def test_the_date_of_a_day_decides(day: str, branches: list[str]) -> None:
    assert [writer.name for writer in writers_of(day)] == branches


@given(st.dates(), st.sets(st.dates()))
def test_every_day_has_the_phase_that_has_begun_last_in_whatever_order_phases_are_declared(
    day: date, dates: set[date]
) -> None:
    begun = sorted(first for first in dates if first <= day)
    assert taken({first: (first,) for first in dates}, day) == tuple(begun[-1:])
    assert len(taken(CHOICE, day)) in (1, 2)


def test_a_backfill_takes_the_branch_of_its_day(tmp_path: Path) -> None:
    """Whatever day it is today: the old day belongs to the old branch, before and after the other was computed."""
    with dg.DagsterInstance.ephemeral() as instance:
        files = Files(tmp_path, instance)
        files.publish(BEFORE, DAY, AFTER)
        for views in (9, 3):
            for day, branches in ((AFTER, ["parquet"]), (BEFORE, ["csv"]), (DAY, BOTH)):
                assert metadata(files.run(day))["writers"] == branches
                assert [writer.name for writer in (CSV, PARQUET) if files.file(writer, day).is_file()] == branches
            assert files.due() == []
            files.publish(BEFORE, DAY, AFTER, views=views)
            assert files.due() == [AFTER, DAY, BEFORE]

        assert "nothing of gold.page_stats has been published for 2026-01-06" in fault(files.run("2026-01-06"))
        assert not files.file(CSV, "2026-01-06").exists()
