from contextlib import nullcontext
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


@given(st.sets(st.sampled_from(MANY)), st.sets(st.sampled_from(MANY)))
def test_nothing_runs_after_a_failed_day(asked: set[str], failing: set[str]) -> None:
    executed: list[str] = []

    def execute(day: str) -> None:
        if day in failing:
            raise PlatformError(what="refused", where=day, next_step="mend it")
        executed.append(day)

    first = min(asked & failing, default=None)
    with nullcontext() if first is None else pytest.raises(PlatformError):
        in_turn(asked, sorted, execute)
    assert executed == (sorted(asked) if first is None else before(asked, [first]))


def test_days_that_become_due_run_in_their_turn() -> None:
    days = [*MANY[1:4]]
    assert in_turn([MANY[1]], lambda left: days, lambda day: days.pop(0)) == [*MANY[1:4]]


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
