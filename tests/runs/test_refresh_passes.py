"""A `refresh` step computes a partition once; sessions, which continue the hour before, again whenever that changed."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import dagster as dg
import pytest

from blogdata.contract.partitions import Grain
from blogdata.runs import driver, turns
from blogdata.runs.lake_resource import LakeResource
from published import bronze, days, deployment, publish, silver
from quality.contracts import GRAPH
from quality.contracts.sessions import CARRIED
from runs.stepped import Work, step

USERS = "silver.users_current"
Hours = dict[int, int]


def hour(number: int) -> str:
    return f"2026-01-05T{number:02d}"


@pytest.fixture
def lake(tmp_path: Path) -> LakeResource:
    return deployment(tmp_path)


def visits(lake: LakeResource, *hours: int) -> int:
    return publish(
        lake.lake, "silver.visits", "event_hour", dict.fromkeys(map(hour, hours), 1), inputs={"bronze.visits": 0}
    )


def sessions(lake: LakeResource, left: Hours, *, read: int) -> None:
    """Publish hours of sessions; a number represents the sessions that each leaves pending."""
    keys = frozenset(map(hour, left))
    landed = CARRIED.read(lake.events.publications("silver.sessions"), keys, Grain.HOUR)
    measures = {hour(number): {"pending": digest} for number, digest in left.items()}
    rows, inputs = dict.fromkeys(keys, 1), {"silver.visits": read}
    version = publish(lake.lake, "silver.sessions", "event_hour", rows, inputs=inputs, measures=measures, landed=landed)
    publish(lake.lake, "silver.sessions_pending", "event_hour", rows, inputs={"silver.sessions": version})


def passes(lake: LakeResource, read: int, *, grows: bool, **asked: object) -> list[list[int]]:
    """Run the step of the sessions; each hour leaves other sessions pending than before, or the same."""

    def work(keys: Sequence[str]) -> None:
        there = {key: entry.measures["pending"] for key, entry in lake.events.publications("silver.sessions").items()}
        sessions(lake, {int(key[-2:]): there.get(key, 0) + grows for key in keys}, read=read)

    return [[int(key[-2:]) for key in keys] for keys in step(lake, "silver.sessions", work, **asked)]


def test_sessions_go_on_to_the_newest_hour(lake: LakeResource) -> None:
    sessions(lake, {5: 1, 6: 1, 7: 1, 8: 1}, read=visits(lake, 5, 6, 7, 8))
    # Hour 8 runs first for its own rows, and again with hour 7, which leaves other sessions pending.
    assert passes(lake, visits(lake, 5, 8), grows=True) == [[5, 8], [6], [7, 8]]
    assert passes(lake, lake.lake.version("silver.visits") or 0, grows=True) == []


def test_a_replayed_hour_makes_the_next_run(lake: LakeResource) -> None:
    read = visits(lake, 5, 6, 7)
    sessions(lake, {5: 1, 6: 1, 7: 1}, read=read)
    assert passes(lake, read, grows=True, again={"silver.sessions": [hour(5), hour(6)]}) == [[5, 6], [7]]
    assert passes(lake, read, grows=True, again={"silver.sessions": [hour(5)]}, only_again=True) == [[5]]
    assert passes(lake, read, grows=True) == [[6], [7]]


def test_a_table_in_order_is_left_to_the_run_that_executes_it(lake: LakeResource) -> None:
    """The backfill's run holds the table, and the run for new data continues without it, even for a day it lacks."""
    days(lake.lake, "2026-01-05", "2026-01-06")
    with held(lake, USERS, "2026-01-05"):
        assert step(lake, USERS, lambda keys: None, scope="ready") == []
    assert step(lake, USERS, lambda keys: None, scope="ready") == [["2026-01-05", "2026-01-06"]]


def test_a_persons_run_waits_for_the_table(lake: LakeResource, monkeypatch: pytest.MonkeyPatch) -> None:
    days(lake.lake, "2026-01-05")
    looks: list[float] = []
    with ExitStack() as other:
        other.enter_context(held(lake, USERS, "2026-01-05"))

        def wait(seconds: float) -> None:
            looks.append(seconds)
            other.close()

        monkeypatch.setattr(turns, "wait", wait)
        assert step(lake, USERS, lambda keys: None) == [["2026-01-05"]]
    assert len(looks) == 1


def test_a_run_for_what_landed_waits_for_no_other(lake: LakeResource, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would wait for the end of a replay, in the step of each table."""
    monkeypatch.setattr(turns, "wait", lambda _: pytest.fail("it waits"))
    bronze(lake.lake, {hour(number): {hour(number): 1} for number in (1, 2)})
    with held(lake, "silver.visits", hour(1)):
        assert step(lake, "silver.visits", _silver(lake, 0), scope="ready", lane="landed") == [[hour(2)]]
    assert step(lake, "silver.visits", _silver(lake, 0), scope="ready", lane="landed") == [[hour(1)]]


def test_a_run_for_what_landed_takes_few_hours_again(lake: LakeResource) -> None:
    """A replay makes all hours stale that have read the old version, and recomputes them itself."""
    everything = {hour(number): {hour(number): 1} for number in range(12)}
    silver(lake.lake, dict.fromkeys([*everything][:11], 1), read=bronze(lake.lake, everything))
    again = bronze(lake.lake, everything)
    work = _silver(lake, again)
    asked = {"scope": "ready", "lane": "landed"}
    assert step(lake, "silver.visits", work, **asked) == [[hour(11)]]
    assert step(lake, "silver.visits", work, max_republished=2, **asked) == [[hour(9), hour(10)]]
    assert step(lake, "silver.visits", work, scope="ready", lane="again") == [[hour(number) for number in range(9)]]


def test_a_replay_is_computed_in_pieces(lake: LakeResource, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece claims its own hours."""
    monkeypatch.setattr(driver, "MOST_AGAIN", 4)
    hours = [hour(number) for number in range(11)]
    read = bronze(lake.lake, {key: {key: 1} for key in hours})
    silver(lake.lake, dict.fromkeys(hours, 1), read=read)
    free: list[set[str]] = []

    def work(keys: Sequence[str]) -> None:
        free.append({*hours} - {*turns.claims(lake.lake, "silver.visits").held()})
        silver(lake.lake, dict.fromkeys(keys, 1), read=read)

    asked = {"again": {"silver.visits": hours}, "only_again": True}
    assert step(lake, "silver.visits", work, **asked) == [hours[:4], hours[4:8], hours[8:]]
    assert [len(keys) for keys in free] == [7, 7, 8]


def _silver(lake: LakeResource, read: int) -> Work:
    """Publish the hours of a step that read one version of bronze."""
    return lambda keys: (silver(lake.lake, dict.fromkeys(keys, 1), read=read), None)[1]


def held(lake: LakeResource, dataset: str, *keys: str) -> AbstractContextManager[set[str]]:
    """Claim partitions as another run does."""
    return turns.claimed(lake.lake, GRAPH.task_of(dataset), keys, dg.get_dagster_logger())
