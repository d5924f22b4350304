"""Sessions are equal whether hours are computed one by one, scattered, or together; late rows affect later hours."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from blogdata.patterns.data_value.incremental_sessionizer import sessionize
from blogdata.simulator.faults import LINE_FAULTS, FaultRates
from blogdata.simulator.spec import SimulationSpec
from data_value.test_stateful_sessionizer import DDL, SPEC, at
from lineage import brute_force, expected
from lineage.conftest import Deploy, deploy
from lineage.deployment import Deployment

__all__ = ("deploy",)
SESSIONS = ("silver.sessions", "silver.sessions_pending")
DATASETS = (*SESSIONS, "gold.sessions_daily")
DAY = "2026-01-05"
RATES = {**dict.fromkeys(LINE_FAULTS, 0.05), "huge_line": 0.0, "empty_hour": 0.05, "missing_hour": 0.05}


def hour(number: int) -> str:
    return f"{DAY}T{number:02d}"


def view(time: str, page: str, user: str = "u", *, private: bool = False) -> bytes:
    visit = {"visit_id": f"v-{user}", "event_time": f"{DAY}T{time}Z", "user_id": user, "page": page}
    return json.dumps({**visit, "keep_private": private, "context": None}).encode()


def check(deployment: Deployment, datasets: Sequence[str] = SESSIONS) -> None:
    """Check that the rows equal those that plain Python computes from the landed files."""
    lines, rules = brute_force.read(deployment.landing), dict(expected.RULES)
    for name in datasets:
        columns, told = rules[name]
        rows = Counter(
            tuple(tuple(value) if isinstance(value, list) else value for value in row)
            for row in deployment.rows(name, *columns)
        )
        assert rows == Counter(told(deployment.landing, lines)), name
    assert deployment.problems() == []


def versions(deployment: Deployment) -> dict[str, int]:
    return {key: entry.version for key, entry in deployment.published("silver.sessions").items()}


def test_a_session_goes_on_in_the_next_partitions(spark: Any) -> None:
    spec = replace(SPEC, inactivity=timedelta(minutes=30))
    # Private from one page view on; the next session begins just over half an hour later, by a microsecond.
    times = (40, 65, 95, 125, 155 + 1 / 60_000_000)
    views = [("u", at(time), f"/{number}", number == 1, number) for number, time in enumerate(times)]
    hours = [hour(number) for number in range(10, 14)]
    one_by_one, pending = list[Any](), None
    for key in hours:
        mine = [each for each in views if f"{each[1]:%Y-%m-%dT%H}" == key]
        found = sessionize(spark.createDataFrame(mine, DDL), pending, spec, partitions=[key])
        rows = found.collect()
        one_by_one += rows
        pending = spark.createDataFrame([row for row in rows if not row.is_completed], found.schema)
    together = sessionize(spark.createDataFrame(views, DDL), None, spec, partitions=hours).collect()
    for computed in (one_by_one, together):
        assert sorted((row.hour, row.is_completed, row.pages, row.new_pages, row.private) for row in computed) == [
            (hours[0], False, 1, 1, False),
            (hours[1], False, 3, 2, True),
            (hours[2], False, 1, 1, False),
            (hours[2], True, 4, 1, True),
            (hours[3], True, 1, 0, False),
        ]


@pytest.fixture(scope="module")
def quiet(deploy: Deploy) -> Deployment:
    """Hours 9 to 11 and 13 to 15 with a session of three hours, and one that only an hour without rows closes."""
    deployment = deploy("quiet")
    views = {
        9: [view("09:40:00", "/a"), view("09:00:00", "/once", "w")],
        10: [view("10:05:00", "/b", private=True), view("10:35:00", "/c"), view("10:59:00", "/last", "w")],
        11: [view("11:05:00", "/d"), view("11:35:00.000001", "/e"), view("11:45:00", "/x", "z")],
        13: [view("13:50:00", "/late", "z")],
        14: [],
        15: [view("15:40:00", "/open", "z")],
    }
    for number, lines in views.items():
        deployment.land(hour(number), lines)
    assert deployment.run(for_=SESSIONS).problems == []
    return deployment


@pytest.mark.campaign
def test_a_session_spans_three_partitions(quiet: Deployment) -> None:
    rows = quiet.rows("silver.sessions", "event_hour", "is_completed", "pages", "new_pages", "keep_private", "user_id")
    mine = sorted(row[:5] for row in rows if row[5] == "u")
    assert mine == [
        (hour(9), False, 1, 1, False),
        # Private from one page view on: the page views before and after it do not change that.
        (hour(10), False, 3, 2, True),
        # The next session begins just over half an hour later, by a microsecond; a missing hour closes it.
        (hour(11), False, 1, 1, False),
        (hour(11), True, 4, 1, True),
        (hour(12), True, 1, 0, False),
    ]
    check(quiet)


@pytest.mark.campaign
def test_the_newest_sessions_stay_open(quiet: Deployment) -> None:
    rows = quiet.rows("silver.sessions", "event_hour", "is_completed", "exit_page")
    assert [row for row in rows if row[2] == "/open"] == [(hour(15), False, "/open")]
    assert hour(16) not in quiet.published("silver.sessions")


@pytest.mark.campaign
def test_a_late_row_reaches_as_far_as_it_changes(quiet: Deployment) -> None:
    before = versions(quiet)
    ids = dict(quiet.rows("silver.sessions", "exit_page", "session_id"))
    # Earlier than the session's first page view; the session keeps its id.
    quiet.land(hour(16), [view("09:20:00", "/before")], name="late.json")
    assert quiet.run(for_=SESSIONS).problems == []
    check(quiet)
    after = versions(quiet)
    # Hours 12 to 14 would not have had to run: from the third pass on, more than one hour is computed at once.
    assert {key for key in before if before[key] != after[key]} == {hour(number) for number in range(9, 15)}
    found = dict(quiet.rows("silver.sessions", "exit_page", "session_id"))
    assert found["/d"] == ids["/d"]
    assert quiet.run(for_=SESSIONS).runs == 0


@pytest.mark.campaign
def test_a_replay_with_the_same_outcome_goes_no_further(quiet: Deployment) -> None:
    before = versions(quiet)
    quiet.replay("silver.sessions", hour(9))
    after = versions(quiet)
    assert {key for key in before if before[key] != after[key]} == {hour(9)}
    assert quiet.run(for_=SESSIONS).runs == 0
    check(quiet)


@pytest.mark.campaign
def test_hours_rerun_in_the_middle_equal_a_new_lake(quiet: Deployment, deploy: Deploy) -> None:
    assert quiet.run(for_=DATASETS).problems == []
    new = deploy("new")
    new.copy_hours(quiet, [hour(number) for number in (9, 10, 11, 13, 14, 15, 16)])
    # First the hours with rows, then all hours at once, including the one that never landed.
    for datasets in (("bronze.visits", "silver.visits", "silver.sessions"), DATASETS):
        assert new.run(select=datasets).problems == []
    expected_rows = {name: new.contents_of(name) for name in DATASETS}
    before = versions(quiet)
    quiet.replay("silver.sessions", hour(10), hour(12))
    after = versions(quiet)
    assert {key for key in before if before[key] != after[key]} == {hour(10), hour(12)}
    assert {name: quiet.contents_of(name) for name in DATASETS} == expected_rows


@pytest.mark.campaign
def test_every_fault_leaves_the_sessions_plain_python_finds(deploy: Deploy) -> None:
    deployment = deploy("faulty")
    deployment.simulate(SimulationSpec(days=1, visits_per_day=1500, seed=19, faults=FaultRates(**RATES)))
    assert deployment.run(for_=DATASETS).problems == []
    check(deployment, DATASETS)
    # Late rows in scattered hours, from the busiest visitors.
    users = Counter(deployment.rows("silver.visits", "user_id"))
    busy = [user for user, _ in users.most_common(6)]
    late = [view(f"{at:02d}:{59 - at:02d}:30", "/late", user) for at in (1, 4, 5, 14, 20) for user in busy]
    deployment.land("2026-01-06T01", late, name="late.json")
    assert deployment.run(for_=DATASETS).problems == []
    check(deployment, DATASETS)
    assert deployment.run(for_=DATASETS).runs == 0
