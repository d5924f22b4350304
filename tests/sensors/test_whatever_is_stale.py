"""One sensor requests all stale partitions: once for the same content, and after pauses if the run failed.

Pattern: Aligned Fan-In, whose days are requested after their last hours.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from blogdata.contract.partitions import Grain, finer
from blogdata.deliver import partner
from blogdata.deliver.outbox import Row
from blogdata.errors import PlatformError
from blogdata.landing.log_formats import formats
from blogdata.landing.log_splitter import split_by_hour
from blogdata.ledger import faults
from blogdata.operate import config
from blogdata.patterns.data_flow.concurrent_runner import AGAIN, LANE, NEW_DATA
from blogdata.planning.snapshot import landed
from blogdata.planning.staleness import Scope
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.refresh_request import JOB
from published import bronze, enriched, land, planner, publish, silver
from quality.contracts import GRAPH
from sensors import refresh
from sensors.run_requests import ABOUT, UNDER_WAY

HOUR = "2026-01-05T03"
whatever_is_stale = refresh.whatever_is_stale()
DAY = "2026-01-05"
LINE = '10.0.0.1 - - [05/Jan/2026:03:04:05 +0000] "GET / HTTP/1.1" 200 5 "-" "Mozilla/5.0"\n'


def keys(data: Any) -> list[str]:
    return [request.run_key for request in data.run_requests or ()]


def request(data: Any) -> dict[str, Any]:
    (requested,) = data.run_requests
    return dict(requested.run_config["resources"]["request"]["config"])


def ready(lake: LakeResource) -> dict[str, list[str]]:
    return {main: list(found) for main, found in planner(lake.lake, scope=Scope.READY).all_stale().items()}


def fail(lake: LakeResource, dataset: str, key: str) -> None:
    """Record a permanent failure of a partition with its current inputs."""
    states = planner(lake.lake).stale(GRAPH.task_of(dataset))
    faults.record(lake.events, dataset, {key: PlatformError(what="torn", where=key, next_step="land it again")}, states)


def under_way(instance: dg.DagsterInstance, status: dg.DagsterRunStatus, lane: Mapping[str, str] = NEW_DATA) -> None:
    place = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("blogdata"), "blogdata")
    origin = RemoteJobOrigin(place, JOB)
    instance.add_run(dg.DagsterRun(job_name=JOB, status=status, tags=dict(lane), remote_job_origin=origin))


def test_an_empty_deployment_asks_for_nothing(lake: LakeResource, tick: Any) -> None:
    lake.landing_path.rmdir()
    assert "everything that has landed is published" in tick(whatever_is_stale).skip_message


def test_unsent_events_are_requested_again_after_pauses(tick: Any, launched: Any, tmp_path: Path) -> None:
    (tmp_path / "home" / "blogdata.toml").write_text('[partner]\nurl = "http://127.0.0.1:1"\n', encoding="utf-8")
    assert not tick(whatever_is_stale).run_requests
    box = partner.outbox(config.load(overrides={"BLOGDATA_HOME": str(tmp_path / "home")}))
    with box.alone():
        box.take(HOUR, "table:1", [Row(identity=["1"], key="a", at=0, payload={})], rows_in=1, private=0)
    data = tick(whatever_is_stale)
    assert data.run_requests[0].tags[ABOUT] == "to be sent: serving.partner_feed"
    launched(data, dg.DagsterRunStatus.FAILURE)
    assert "the next one is asked for in" in tick(whatever_is_stale).skip_message


def test_flagged_partitions_are_requested_in_one_run(lake: LakeResource, tick: Any) -> None:
    for hour in finer(DAY, Grain.DAY, Grain.HOUR):
        land(lake, "visits", hour, {"a.json": "{}\n"})
    land(lake, "users", DAY, {"users.json": "{}\n"})
    data = tick(whatever_is_stale)
    # Dagster ignores a known run key: a tick that died before storing its cursor requests in vain.
    assert len(keys(data)) == 1
    assert keys(data) == keys(tick(whatever_is_stale))
    assert (request(data)["scope"], request(data)["again"]) == ("ready", {})
    assert "bronze.visits 2026-01-05T00 and" in data.run_requests[0].tags["blogdata/about"]


def test_sensor_waits_for_a_run_under_way(lake: LakeResource, tick: Any, instance: dg.DagsterInstance) -> None:
    land(lake, "visits", HOUR, {"a.json": "{}\n"})
    under_way(instance, dg.DagsterRunStatus.QUEUED)
    data = tick(whatever_is_stale)
    assert (keys(data), "is under way" in data.skip_message) == ([], True)


def test_failed_content_is_requested_again_after_pauses(
    lake: LakeResource, tick: Any, launched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(lake, "visits", HOUR, {"a.json": "{}\n"})
    asked, waited, later = [], [], 0
    monkeypatch.setattr("sensors.run_requests._now", lambda: time.time() + later)
    data = tick(whatever_is_stale)
    for _ in range(3):
        asked += launched(data, dg.DagsterRunStatus.FAILURE)
        for seconds in range(0, 600, 30):
            later = seconds
            data = tick(whatever_is_stale)
            if data.run_requests:
                break
        waited.append(round(later / 60))
    assert waited == [1, 2, 4]
    assert len(set(asked)) == 3


def test_a_day_is_ready_after_its_last_hour(lake: LakeResource) -> None:
    hours = finer(DAY, Grain.DAY, Grain.HOUR)
    enriched(lake.lake, hours[:23], read=0)
    assert "gold.page_stats" not in ready(lake)
    read = enriched(lake.lake, hours[23:], read=0)
    assert ready(lake)["gold.page_stats"] == ready(lake)["gold.referral_stats"] == [DAY]
    assert "gold.visits_cube_weekly" not in ready(lake)
    for dataset in ("gold.page_stats", "gold.referral_stats"):
        publish(lake.lake, dataset, "event_date", {DAY: 1}, inputs={"silver.visits_enriched": read})
    enriched(lake.lake, hours[7:8], read=0)
    # The final version includes late rows on schedule, not whenever they arrive.
    assert ready(lake)["gold.page_stats"] == [DAY]
    assert "gold.referral_stats" not in ready(lake)


def test_a_fault_keeps_nothing_else_waiting_and_is_retried_after_pauses(
    lake: LakeResource, tick: Any, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(lake, "visits", HOUR, {"a.json.gz": "torn"})
    fail(lake, "bronze.visits", HOUR)
    under_way(instance, dg.DagsterRunStatus.FAILURE)
    assert "waits for a person: bronze.visits 2026-01-05T03" in tick(whatever_is_stale).skip_message
    with monkeypatch.context() as patch:
        patch.setattr("sensors.refresh._PAUSE_SECONDS", 0.0)
        assert request(tick(whatever_is_stale))["retry_waiting"] is True
    land(lake, "visits", "2026-01-05T04", {"a.json": "{}\n"})
    data = tick(whatever_is_stale)
    assert request(data)["retry_waiting"] is False
    assert data.run_requests[0].tags["blogdata/about"] == "bronze.visits 2026-01-05T04"


def test_a_log_is_requested_until_split(lake: LakeResource, tick: Any) -> None:
    folder = lake.landing_path / "access_logs"
    folder.mkdir()
    log = folder / "access.log"
    log.write_text(LINE)
    first = keys(tick(whatever_is_stale))
    assert len(first) == 1
    split_by_hour(log, lake.landing_path, formats(), now=datetime.now(timezone.utc))
    second = tick(whatever_is_stale)
    assert second.run_requests[0].tags["blogdata/about"] == f"bronze.visits {HOUR}"
    assert keys(second) != first


def test_a_file_after_the_flag_is_requested(lake: LakeResource, tick: Any) -> None:
    folder = land(lake, "visits", HOUR, {"a.json": "{}\n"})
    prints = {hour.key: hour.fingerprint for hour in landed(lake.landing_path, "visits", Grain.HOUR)}
    bronze(lake.lake, {HOUR: {HOUR: 1}}, landed=prints)
    assert "bronze.visits" not in ready(lake)
    os.utime(folder / "_SUCCESS", ns=(2**61, 2**61))
    assert "bronze.visits" not in ready(lake), "the flag alone was written again"
    (folder / "straggler.json").write_text("{}\n")
    os.utime(folder / "straggler.json", ns=(2**62, 2**62))
    data = tick(whatever_is_stale)
    assert f"bronze.visits {HOUR}" in data.run_requests[0].tags["blogdata/about"]


PAST, NEXT = [*finer(DAY, Grain.DAY, Grain.HOUR)], "2026-01-07T00"


def lanes(data: Any) -> dict[str, dict[str, Any]]:
    """Map the lane of each request to its configuration."""
    requests = data.run_requests or ()
    return {one.tags[LANE]: one.run_config["resources"]["request"]["config"] for one in requests}


@pytest.mark.parametrize("status", UNDER_WAY, ids=lambda status: status.value)
def test_a_landed_hour_is_requested_beside_recomputation(
    lake: LakeResource, tick: Any, instance: dg.DagsterInstance, status: dg.DagsterRunStatus
) -> None:
    under_way(instance, status, AGAIN)
    land(lake, "visits", NEXT, {"a.json": "{}\n"})
    (config,) = lanes(tick(whatever_is_stale)).values()
    assert (config["lane"], config["scope"], config["again"]) == ("landed", "ready", {})


def test_many_late_hours_are_a_run_of_their_own_and_stay_with_one_under_way(
    lake: LakeResource, tick: Any, instance: dg.DagsterInstance
) -> None:
    """Late rows have made more hours stale than the run of a new hour takes along."""
    silver(lake.lake, dict.fromkeys(PAST, 1), read=bronze(lake.lake, {key: {key: 1} for key in PAST}))
    bronze(lake.lake, {NEXT: dict.fromkeys(PAST, 1)})
    requests = lanes(tick(whatever_is_stale))
    assert (requests["landed"]["max_republished"], requests["landed"]["lane"]) == (6, "landed")
    again = requests["again"]
    assert (again["lane"], again["scope"], again["only_again"]) == ("again", "ready", False)
    under_way(instance, dg.DagsterRunStatus.STARTED, AGAIN)
    requests = lanes(tick(whatever_is_stale))
    assert (requests.get("landed", {}).get("max_republished", 0), "again" in requests) == (0, False)
