"""Periods that depend on each other run one at a time and in order; a failure stops the later ones."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogdata.errors import PlatformError
from blogdata.ledger import faults
from blogdata.patterns.data_flow.single_runner import before, in_turn
from blogdata.planning.plan import Planner
from blogdata.planning.snapshot import Snapshot
from blogdata.runs.lake_resource import LakeResource
from published import days as deliver
from published import deployment
from quality.contracts import GRAPH

USERS = "silver.users_current"
MANY = tuple((date(2026, 1, 1) + timedelta(days=count)).isoformat() for count in range(120))
FAILED = MANY[40]


@pytest.fixture
def lake(tmp_path_factory: pytest.TempPathFactory) -> LakeResource:
    return deployment(tmp_path_factory.mktemp("single") / "home")


class Runner:
    """Executes days, and records how many it executes at once."""

    def __init__(self, *failing: str) -> None:
        self.executed: list[str] = []
        self.failing = failing

    def due(self, left: Collection[str]) -> list[str]:
        return sorted(left)

    def execute(self, day: str) -> str:
        if day in self.failing:
            raise PlatformError(what="refused", where=day, next_step="mend it")
        self.executed.append(day)
        return day


@given(st.sets(st.sampled_from(MANY)), st.sets(st.sampled_from(MANY)))
def test_nothing_runs_after_a_failed_day(asked: set[str], failing: set[str]) -> None:
    runner = Runner(*failing)
    first = min(asked & failing, default=None)
    if first is None:
        in_turn(asked, runner.due, runner.execute)
        assert runner.executed == sorted(asked)
    else:
        with pytest.raises(PlatformError):
            in_turn(asked, runner.due, runner.execute)
        assert runner.executed == before(asked, [first])


def test_days_that_become_due_run_in_their_turn() -> None:
    """An old day makes all later days of the table due."""
    runner = Runner()

    def due(left: Collection[str]) -> list[str]:
        follow = {MANY[2], MANY[3]} - set(runner.executed) if MANY[1] in (*left, *runner.executed) else set()
        return sorted({*left, *follow})

    assert in_turn([MANY[1]], due, runner.execute) == list(MANY[1:4])


def test_a_new_day_waits_for_the_failed_one(lake: LakeResource) -> None:
    """The sensor must not request the new day: it would run on a state without the failed day."""
    deliver(lake.lake, *MANY[39:42])
    task = GRAPH.task_of(USERS)
    states = planner(lake).stale(task)
    assert list(states) == list(MANY[39:42])
    error = PlatformError(what="refused", where=FAILED, next_step="mend it")
    faults.record(lake.events, USERS, {FAILED: error}, states)
    deliver(lake.lake, MANY[42])
    waiting = planner(lake).waiting(task)
    assert list(waiting) == list(MANY[40:43])
    assert set(planner(lake).stale(task)) - waiting.keys() == {MANY[39]}, "the day before runs first"
    deliver(lake.lake, FAILED)
    assert planner(lake).waiting(task) == {}, "the input has changed: all days run, in order"


def planner(lake: LakeResource) -> Planner:
    return Planner(graph=GRAPH, look=Snapshot(lake.landing_zone, lake.events))
