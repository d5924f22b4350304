"""Sessions are equal whether hours are computed one by one, scattered, or together; late rows affect later hours."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from blogdata.patterns.data_value.incremental_sessionizer import sessionize
from lineage.conftest import Deploy, deploy
from lineage.deployment import Deployment
from patterns.test_stateful_sessionizer import DDL, SPEC, at

__all__ = ("deploy",)
SESSIONS = ("silver.sessions", "silver.sessions_pending")
DATASETS = (*SESSIONS, "gold.sessions_daily")
DAY = "2026-01-05"


def hour(number: int) -> str:
    return f"{DAY}T{number:02d}"


def view(time: str, page: str, user: str = "u", *, private: bool = False) -> bytes:
    visit = {"visit_id": f"v-{user}", "event_time": f"{DAY}T{time}Z", "user_id": user, "page": page}
    return json.dumps({**visit, "keep_private": private, "context": None}).encode()


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


@pytest.mark.campaign
def test_hours_rerun_in_the_middle_equal_a_new_lake(deploy: Deploy) -> None:
    """Hours 9 to 11 and 13 to 15 with a session of three hours, and one that only an hour without rows closes."""
    quiet, new = deploy("quiet"), deploy("new")
    views = {
        9: [view("09:40:00", "/a"), view("09:00:00", "/once", "w")],
        10: [view("10:05:00", "/b", private=True), view("10:35:00", "/c"), view("10:59:00", "/last", "w")],
        11: [view("11:05:00", "/d"), view("11:35:00.000001", "/e"), view("11:45:00", "/x", "z")],
        13: [view("13:50:00", "/late", "z")],
        14: [],
        15: [view("15:40:00", "/open", "z")],
    }
    for number, lines in views.items():
        quiet.land(hour(number), lines)
    for datasets in (SESSIONS, DATASETS):
        assert quiet.run(for_=datasets).problems == []
    new.copy_hours(quiet, [hour(number) for number in (9, 10, 11, 13, 14, 15)])
    # First the hours with rows, then all hours at once, including the one that never landed.
    for datasets in (("bronze.visits", "silver.visits", "silver.sessions"), DATASETS):
        assert new.run(select=datasets).problems == []
    expected_rows = {name: new.contents_of(name) for name in DATASETS}
    before = versions(quiet)
    quiet.replay("silver.sessions", hour(10), hour(12))
    after = versions(quiet)
    assert {key for key in before if before[key] != after[key]} == {hour(10), hour(12)}
    assert {name: quiet.contents_of(name) for name in DATASETS} == expected_rows
