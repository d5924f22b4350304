"""A partition takes the branch that its date selects, and the run's graph shows which one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.serving.page_files import page_files
from blogdata.errors import ConfigurationError
from blogdata.orchestration.split_files import PHASE
from blogdata.patterns.data_flow.exclusive_choice import Choice, Phase, taken
from blogdata.publish.partitions import Grain
from data_flow.page_file_runs import DAY, Files

BEFORE, SHADOW, AFTER = "2025-12-31", DAY, "2027-01-01"
CHOICE = page_files.choice


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Files(tmp_path, instance)


@pytest.mark.parametrize(
    ("day", "branches"),
    [
        (BEFORE, ("csv",)),
        ("2026-01-01", ("csv", "parquet")),
        ("2026-12-31", ("csv", "parquet")),
        (AFTER, ("parquet",)),
    ],
)
def test_the_date_of_a_day_decides(day: str, branches: tuple[str, ...]) -> None:
    assert taken(CHOICE, day).branches == branches


@given(st.dates().map(lambda day: day.isoformat()))
def test_every_day_has_exactly_one_phase(day: str) -> None:
    begun = [phase for phase in CHOICE.phases if phase.since <= day]
    assert taken(CHOICE, day) == begun[-1]


def test_days_are_grouped_by_the_branches_they_take() -> None:
    def taken_by(branch: str) -> list[str]:
        return [day for day in (BEFORE, SHADOW, AFTER) if branch in taken(CHOICE, day).branches]

    assert {branch: taken_by(branch) for branch in CHOICE.branches} == {
        "csv": [BEFORE, SHADOW],
        "parquet": [SHADOW, AFTER],
    }


@pytest.mark.parametrize(
    ("day", "skipped", "phase"),
    [
        (BEFORE, {"page_stats_parquet", "compared"}, "csv only"),
        (SHADOW, set(), "shadow"),
        (AFTER, {"page_stats_csv", "compared"}, "parquet only"),
    ],
)
def test_the_run_graph_shows_the_branch_not_taken(files: Files, day: str, skipped: set[str], phase: str) -> None:
    files.publish(day)
    run = files.run(day)
    assert run.success
    assert run.steps(dg.DagsterEventType.STEP_SKIPPED) == skipped
    assert run.steps(dg.DagsterEventType.STEP_FAILURE) == set()
    assert run.tags[PHASE] == phase
    expected = {"csv", "parquet", "compared"} - {step.removeprefix("page_stats_") for step in skipped}
    assert run.materialized() == expected
    assert {name for name in ("csv", "parquet") if files.file(name, day).is_file()} == expected - {"compared"}


def test_a_backfill_takes_the_branch_of_its_day(files: Files) -> None:
    """Today is after the cut-over, but the old day still belongs to the old branch."""
    files.publish(BEFORE, AFTER)
    first = files.run(BEFORE).materialized()
    assert files.run(AFTER).materialized() == {"parquet"}
    files.publish(BEFORE, views=9)
    assert files.run(BEFORE).materialized() == first == {"csv"}


def test_the_choice_opens_no_table_for_its_rows(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.publish(BEFORE, SHADOW, AFTER)
    monkeypatch.setattr(type(files.access), "batches", None)
    assert files.due() == {AFTER: ["parquet"], SHADOW: ["csv", "parquet"], BEFORE: ["csv"]}


def test_an_unpublished_day_takes_no_branch(files: Files) -> None:
    files.publish(SHADOW)
    run = files.run("2026-01-06")
    assert not run.success
    assert run.steps(dg.DagsterEventType.STEP_FAILURE) == {"page_stats_choose"}
    assert "nothing of gold.page_stats has been published for 2026-01-06" in run.faults()
    assert run.materialized() == set()


@pytest.mark.parametrize(
    ("phases", "why"),
    [
        ((), "no beginning"),
        ((Phase(name="a", branches=("x",), since=DAY),), "no beginning"),
        ((Phase(name="a", branches=("x",)), Phase(name="b", branches=("y",))), "b has to begin after a"),
        (
            (
                Phase(name="a", branches=("x",)),
                Phase(name="b", branches=("y",), since=DAY),
                Phase(name="c", branches=("z",), since=DAY),
            ),
            "c has to begin after b",
        ),
        ((Phase(name="a", branches=()),), "takes no branch"),
        ((Phase(name="a", branches=("x",)), Phase(name="b", branches=("y",), since="soon")), "not the name of a day"),
    ],
)
def test_phases_that_overlap_are_refused(phases: tuple[Phase, ...], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        Choice(grain=Grain.DAY, phases=phases)
