"""The late data sensor: exactly the event hours that late rows touched, and none that is on its way already."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from orchestration import owners
from orchestration.dataset import key_of
from patterns.core.claims import Claims
from published import bronze, days, enriched, publish, silver, whole
from resources.lake import LakeResource
from sensors import jobs, late_data, watermark_moved
from sensors.asking import MOST_AT_ONCE
from services import processes

RUNNING = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
)
SILVER = frozenset({dg.AssetKey(["silver", "visits"])})


def hours(data: Any) -> list[str]:
    return [request.tags["dagster/partition"] for request in data.run_requests or ()]


def under_way(
    instance: dg.DagsterInstance,
    status: dg.DagsterRunStatus,
    tags: dict[str, str],
    *,
    job: str = jobs.event_hour.name,
    assets: frozenset[dg.AssetKey] | None = None,
) -> None:
    place = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("blogdata"), "blogdata")
    instance.add_run(
        dg.DagsterRun(
            job_name=job,
            status=status,
            tags=tags,
            asset_selection=assets,
            remote_job_origin=RemoteJobOrigin(place, job),
        )
    )


@pytest.fixture
def settled(lake: LakeResource) -> LakeResource:
    """Three hours on time, all integrated."""
    read = bronze(lake.lake, {f"2026-01-05T0{hour}": {f"2026-01-05T0{hour}": 10} for hour in (1, 2, 3)})
    silver(lake.lake, {f"2026-01-05T0{hour}": 10 for hour in (1, 2, 3)}, read=read)
    return lake


def test_an_empty_lake_asks_for_nothing(lake: LakeResource, tick: Any) -> None:
    assert tick(late_data).skip_message == "every hour has seen all of its rows"
    assert tick(watermark_moved).skip_message == "every hour has seen all of its rows"


def test_settled_hours_ask_for_nothing(settled: LakeResource, tick: Any) -> None:
    assert tick(late_data).skip_message == "every hour has seen all of its rows"


def test_late_rows_ask_for_exactly_the_hours_they_touched(settled: LakeResource, tick: Any) -> None:
    read = bronze(settled.lake, {"2026-01-05T04": {"2026-01-05T04": 8, "2026-01-05T02": 1, "2025-12-31T23": 1}})
    silver(settled.lake, {"2026-01-05T04": 8}, read=read)
    assert hours(tick(late_data)) == ["2025-12-31T23", "2026-01-05T02"]


def test_an_hour_that_has_seen_its_late_rows_is_not_asked_for_again(settled: LakeResource, tick: Any) -> None:
    read = bronze(settled.lake, {"2026-01-05T04": {"2026-01-05T04": 8, "2026-01-05T02": 1, "2026-01-05T03": 1}})
    silver(settled.lake, {"2026-01-05T04": 8, "2026-01-05T02": 11}, read=read)
    assert hours(tick(late_data)) == ["2026-01-05T03"]


def test_a_run_that_read_bronze_before_the_late_rows_has_not_seen_them(settled: LakeResource, tick: Any) -> None:
    before = settled.lake.version("bronze.visits")
    assert before is not None
    bronze(settled.lake, {"2026-01-05T04": {"2026-01-05T02": 1}})
    # It is published after the late rows, and yet has only what it read: times would not have told.
    silver(settled.lake, {"2026-01-05T02": 10, "2026-01-05T04": 0}, read=before)
    assert "2026-01-05T02" in hours(tick(late_data))


def test_a_late_row_that_was_taken_back_runs_its_hour_again(settled: LakeResource, tick: Any) -> None:
    first = bronze(settled.lake, {"2026-01-05T04": {"2026-01-05T04": 8, "2026-01-05T02": 1}})
    silver(settled.lake, {"2026-01-05T04": 8, "2026-01-05T02": 11}, read=first)
    second = bronze(settled.lake, {"2026-01-05T04": {"2026-01-05T04": 8}})
    silver(settled.lake, {"2026-01-05T04": 8}, read=second)
    assert hours(tick(late_data)) == ["2026-01-05T02"]


@pytest.mark.parametrize("status", RUNNING, ids=lambda status: status.value)
def test_an_hour_that_is_under_way_is_left_alone(
    settled: LakeResource, tick: Any, instance: dg.DagsterInstance, status: dg.DagsterRunStatus
) -> None:
    bronze(settled.lake, {"2026-01-05T04": {"2026-01-05T04": 8, "2026-01-05T02": 1}})
    under_way(instance, status, {"dagster/partition": "2026-01-05T04"}, job=jobs.hour_of_arrival.name)
    assert hours(tick(late_data)) == ["2026-01-05T02"]


def test_hours_of_a_range_that_is_under_way_are_left_alone(
    settled: LakeResource, tick: Any, instance: dg.DagsterInstance
) -> None:
    bronze(settled.lake, {"2026-01-05T04": {f"2026-01-05T0{hour}": 1 for hour in (1, 2, 3, 4)}})
    span = {
        "dagster/asset_partition_range_start": "2026-01-05T02",
        "dagster/asset_partition_range_end": "2026-01-05T03",
    }
    under_way(instance, dg.DagsterRunStatus.STARTED, span, job="__ASSET_JOB", assets=SILVER)
    assert hours(tick(late_data)) == ["2026-01-05T01", "2026-01-05T04"]


def test_a_running_hour_of_another_dataset_holds_nothing_up(
    settled: LakeResource, tick: Any, instance: dg.DagsterInstance
) -> None:
    bronze(settled.lake, {"2026-01-05T04": {"2026-01-05T02": 1}})
    other = frozenset({dg.AssetKey(["silver", "late_visits"])})
    tags = {"dagster/partition": "2026-01-05T02"}
    under_way(instance, dg.DagsterRunStatus.STARTED, tags, job="__ASSET_JOB", assets=other)
    assert "2026-01-05T02" in hours(tick(late_data))


def test_a_run_that_has_ended_holds_nothing_up(settled: LakeResource, tick: Any, instance: dg.DagsterInstance) -> None:
    bronze(settled.lake, {"2026-01-05T04": {"2026-01-05T02": 1}})
    under_way(instance, dg.DagsterRunStatus.FAILURE, {"dagster/partition": "2026-01-05T02"})
    assert "2026-01-05T02" in hours(tick(late_data))


def test_two_ticks_before_anything_ran_ask_for_the_same_run(settled: LakeResource, tick: Any) -> None:
    bronze(settled.lake, {"2026-01-05T04": {"2026-01-05T02": 1}})
    first = [request.run_key for request in tick(late_data).run_requests]
    assert first == [request.run_key for request in tick(late_data).run_requests]


def test_more_late_rows_after_a_failed_run_ask_for_the_hour_at_once(
    settled: LakeResource, tick: Any, launched: Any
) -> None:
    bronze(settled.lake, {"2026-01-05T04": {"2026-01-05T02": 1}})
    failed = launched(tick(late_data), dg.DagsterRunStatus.FAILURE)
    bronze(settled.lake, {"2026-01-05T05": {"2026-01-05T02": 1}})
    asked = tick(late_data)
    assert hours(asked) == ["2026-01-05T02", "2026-01-05T05"]
    assert set(failed).isdisjoint(launched(asked))


def test_hours_that_a_late_line_outdated_run_again_under_a_key_of_their_own(settled: LakeResource, tick: Any) -> None:
    before = settled.lake.version("bronze.visits")
    assert before is not None
    read = bronze(settled.lake, {"2026-01-05T04": {"2026-01-05T02": 1}})
    late = {"2026-01-05T02": 11, "2026-01-05T04": 0}
    by = silver(settled.lake, late, read=read, outdates={"2026-01-05T02": ["2026-01-05T03"]})
    (request,) = tick(late_data).run_requests
    assert request.tags["dagster/partition"] == "2026-01-05T03"
    assert f"outdated by version {by}" in request.run_key
    # Published later, and computed from what had arrived before.
    silver(settled.lake, {"2026-01-05T03": 10}, read=before)
    assert hours(tick(late_data)) == ["2026-01-05T03"]
    silver(settled.lake, {"2026-01-05T03": 10}, read=read)
    assert not hours(tick(late_data))


def test_a_long_history_is_integrated_in_slices(lake: LakeResource, tick: Any) -> None:
    bronze(lake.lake, {"2026-01-07T00": {f"2026-01-0{day}T{hour:02d}": 1 for day in (5, 6) for hour in range(24)}})
    assert len(hours(tick(late_data))) == MOST_AT_ONCE


def test_the_oldest_event_that_is_not_rejected_has_its_partition(settled: LakeResource, tick: Any) -> None:
    bronze(settled.lake, {"2026-01-05T04": {"2000-01-01T00": 1, "2026-01-05T02": 1}})
    assert hours(tick(late_data)) == ["2000-01-01T00", "2026-01-05T02", "2026-01-05T04"]


def test_hours_that_were_enriched_before_their_users_came_run_again(settled: LakeResource, tick: Any) -> None:
    users = whole(settled.lake, "silver.users", inputs={"bronze.users": days(settled.lake, "2026-01-04")})
    enriched(settled.lake, ["2026-01-05T01", "2026-01-05T02"], read=users)
    assert not hours(tick(late_data))
    delivered = days(settled.lake, "2026-01-05")
    assert not hours(tick(late_data)), "silver.users does not have them yet"
    newer = whole(settled.lake, "silver.users", inputs={"bronze.users": delivered})
    assert hours(tick(late_data)) == ["2026-01-05T01", "2026-01-05T02"]
    enriched(settled.lake, ["2026-01-05T01"], read=newer)
    assert hours(tick(late_data)) == ["2026-01-05T02"]


def test_hours_whose_runs_failed_leave_their_slots_to_the_others_until_their_pause_is_over(
    lake: LakeResource, tick: Any, launched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = [f"2026-01-0{day}T{hour:02d}" for day in (5, 6) for hour in range(24)][: MOST_AT_ONCE + 6]
    bronze(lake.lake, {"2026-01-07T00": dict.fromkeys(late, 1)})
    first = tick(late_data)
    failed = launched(first, dg.DagsterRunStatus.FAILURE)
    assert hours(first) == late[:MOST_AT_ONCE]
    # What comes for other hours is no reason to run these again.
    bronze(lake.lake, {"2026-01-07T01": {late[-1]: 1}})
    second = tick(late_data)
    assert hours(second) == [*late[MOST_AT_ONCE:], "2026-01-07T00", "2026-01-07T01"]
    launched(second)
    assert not hours(tick(late_data))
    monkeypatch.setattr("sensors.asking._now", lambda: time.time() + 61)
    again = tick(late_data)
    assert hours(again) == late[:MOST_AT_ONCE]
    assert set(failed).isdisjoint(launched(again))
    assert not hours(tick(late_data))


def test_hours_that_the_command_line_is_at_are_left_alone_until_it_has_ended(lake: LakeResource, tick: Any) -> None:
    bronze(lake.lake, {"2026-01-05T04": {"2026-01-05T02": 1, "2026-01-05T04": 1}})
    alive = True
    claims = Claims(lake.lake, "silver.visits", alive=lambda claim: alive)
    claims.take(["2026-01-05T02"], owners.this_run())
    assert hours(tick(late_data)) == ["2026-01-05T04"]
    with subprocess.Popen([sys.executable, "-c", ""]) as died:
        identity = processes.identify(died.pid)
    alive = False
    claims.take(["2026-01-05T02"], f"{socket.gethostname()} {identity.pid} {identity.created} 0a1b2c3d")
    assert hours(tick(late_data)) == ["2026-01-05T02", "2026-01-05T04"]


def test_an_hour_is_judged_again_when_an_earlier_one_has_moved_its_watermark(
    lake: LakeResource, tick: Any, launched: Any
) -> None:
    first, second = "2026-01-05T01", "2026-01-05T02"
    arrived(lake, first, until="2026-01-05T01:50:00Z")
    arrived(lake, second, until="2026-01-05T02:50:00Z")
    judged(lake, {first: "no watermark", second: "watermark 2026-01-05T01:35:00+00:00"})
    assert tick(watermark_moved).skip_message == "every hour has seen all of its rows"
    arrived(lake, first, until="2026-01-05T01:58:00Z")
    asked = tick(watermark_moved)
    assert hours(asked) == [second]
    assert [list(request.asset_selection) for request in asked.run_requests] == [[key_of("silver.late_visits")]]
    failed = launched(asked, dg.DagsterRunStatus.FAILURE)
    assert not hours(tick(watermark_moved))
    arrived(lake, first, until="2026-01-05T01:59:00Z")
    asked = tick(watermark_moved)
    assert hours(asked) == [second], "another watermark is not kept waiting"
    assert set(failed).isdisjoint(launched(asked))
    judged(lake, {second: "watermark 2026-01-05T01:44:00+00:00"})
    assert tick(watermark_moved).skip_message == "every hour has seen all of its rows"


def arrived(lake: LakeResource, hour: str, *, until: str) -> None:
    """Publish an hour of bronze.visits whose latest event has a time."""
    publish(lake.lake, "bronze.visits", "arrival_hour", {hour: 1}, measures={hour: {"max_event_time": until}})


def judged(lake: LakeResource, marks: dict[str, str]) -> None:
    """Publish hours of silver.late_visits that were told by watermarks."""
    publish(lake.lake, "silver.late_visits", "arrival_hour", dict.fromkeys(marks, 1), landed=marks)
