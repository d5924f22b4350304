"""Readiness sensors: what has landed completely starts one run, and nothing else does."""

from __future__ import annotations

import json
import os
import time
from datetime import datetime, timezone
from typing import Any

import dagster as dg
import pytest

from assets.staleness import landed
from orchestration import owners
from patterns.core.claims import Claims
from patterns.core.partitions import Grain
from patterns.ingestion.combined_log import hour_of_combined
from patterns.ingestion.log_splitter import split_by_hour
from published import bronze, land
from resources.lake import LakeResource
from sensors import access_logs_landed, devices_landed, hour_is_ready, users_landed
from sensors.asking import MOST_AT_ONCE

HOUR = "2026-01-05T03"
LINE = '10.0.0.1 - - [05/Jan/2026:03:04:05 +0000] "GET / HTTP/1.1" 200 5 "-" "Mozilla/5.0"\n'


def fingerprints(lake: LakeResource) -> dict[str, str]:
    return {hour.key: hour.fingerprint for hour in landed(lake.landing_path, "visits", Grain.HOUR)}


def partitions(data: Any) -> list[str]:
    return [request.tags["dagster/partition"] for request in data.run_requests]


def keys(data: Any) -> list[str]:
    return [request.run_key for request in data.run_requests]


def test_a_flagged_hour_starts_one_run_for_its_partition(lake: LakeResource, tick: Any) -> None:
    land(lake, "visits", HOUR, {"a.json": "{}\n"})
    assert partitions(tick(hour_is_ready)) == [HOUR]


def test_files_without_a_flag_start_nothing(lake: LakeResource, tick: Any) -> None:
    land(lake, "visits", HOUR, {"a.json": "{}\n"}, flag=False)
    assert partitions(tick(hour_is_ready)) == []


def test_a_hidden_name_is_no_flag(lake: LakeResource, tick: Any) -> None:
    land(lake, "visits", HOUR, {"a.json": "{}\n", "_SUCCESS.tmp": "", "._SUCCESS": ""}, flag=False)
    assert partitions(tick(hour_is_ready)) == []


def test_no_landing_zone_at_all_starts_nothing(lake: LakeResource, tick: Any) -> None:
    os.rmdir(lake.landing_path)  # noqa: PTH106
    for sensor in (hour_is_ready, users_landed, devices_landed, access_logs_landed):
        assert tick(sensor).run_requests == []


def test_the_next_tick_does_not_start_the_hour_again(lake: LakeResource, tick: Any, launched: Any) -> None:
    land(lake, "visits", HOUR, {"a.json": "{}\n"})
    first = tick(hour_is_ready)
    launched(first)
    second = tick(hour_is_ready, first.cursor)
    assert partitions(second) == []
    assert json.loads(second.cursor) == json.loads(first.cursor)


def test_hours_whose_run_failed_are_asked_for_again_after_pauses(
    lake: LakeResource, tick: Any, launched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(lake, "visits", HOUR, {"a.json": "{}\n"})
    asked, waited, later = [], [], 0
    monkeypatch.setattr("sensors.asking._now", lambda: time.time() + later)
    cursor = None
    for _ in range(3):
        data = tick(hour_is_ready, cursor)
        asked += launched(data, dg.DagsterRunStatus.FAILURE)
        for seconds in range(0, 600, 30):
            later = seconds
            data = tick(hour_is_ready, data.cursor)
            if data.run_requests:
                break
        waited.append(round(later / 60))
        cursor = data.cursor
    assert waited == [1, 2, 4]
    assert len(set(asked)) == 3
    bronze(lake.lake, {HOUR: {HOUR: 1}}, landed=fingerprints(lake))
    assert partitions(tick(hour_is_ready, cursor)) == []


def test_an_hour_that_changes_and_changes_back_is_run_as_it_was_once_more(
    lake: LakeResource, tick: Any, launched: Any
) -> None:
    straggler = land(lake, "visits", HOUR, {"a.json": "{}\n"}) / "straggler.json"
    asked: list[str] = []
    cursor = None
    for there in (False, True, False, True, False):
        straggler.unlink(missing_ok=True)
        if there:
            straggler.touch()
            os.utime(straggler, ns=(1, 1))
        data = tick(hour_is_ready, cursor)
        assert partitions(data) == [HOUR]
        # Dagster starts nothing for a run key it knows.
        assert set(keys(data)).isdisjoint(asked)
        asked += launched(data, dg.DagsterRunStatus.SUCCESS)
        bronze(lake.lake, {HOUR: {HOUR: 1}}, landed=fingerprints(lake))
        cursor = tick(hour_is_ready, data.cursor).cursor


def test_an_hour_that_the_command_line_is_at_is_left_alone(lake: LakeResource, tick: Any) -> None:
    land(lake, "visits", HOUR, {"a.json": "{}\n"})
    claims, owner = Claims(lake.lake, "bronze.visits", alive=owners.alive), owners.this_run()
    claims.take([HOUR], owner)
    held = tick(hour_is_ready)
    assert partitions(held) == []
    claims.release([HOUR], owner)
    assert partitions(tick(hour_is_ready, held.cursor)) == [HOUR]


def test_a_tick_that_died_before_its_cursor_was_kept_asks_for_the_same_run(lake: LakeResource, tick: Any) -> None:
    land(lake, "visits", HOUR, {"a.json": "{}\n"})
    # Dagster starts nothing for a run key it knows.
    assert keys(tick(hour_is_ready)) == keys(tick(hour_is_ready))


def test_a_file_after_the_flag_starts_the_hour_again_and_is_named(
    lake: LakeResource, tick: Any, launched: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = land(lake, "visits", HOUR, {"a.json": "{}\n"})
    first = tick(hour_is_ready)
    launched(first)
    (folder / "straggler.json").write_text("{}\n")
    os.utime(folder / "straggler.json", ns=(2**61, 2**61))
    second = tick(hour_is_ready, first.cursor)
    assert partitions(second) == [HOUR]
    assert keys(second) != keys(first)
    assert "straggler.json" in capsys.readouterr().err
    launched(second)
    assert partitions(tick(hour_is_ready, second.cursor)) == []


def test_a_file_written_again_with_the_same_size_starts_the_hour_again(lake: LakeResource, tick: Any) -> None:
    folder = land(lake, "visits", HOUR, {"a.json": '{"a": 1}\n'})
    first = tick(hour_is_ready)
    before = (folder / "a.json").stat()
    (folder / "a.json").write_text('{"a": 2}\n')
    os.utime(folder / "a.json", ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    # Names and sizes alone would not have told.
    assert (folder / "a.json").stat().st_size == before.st_size
    assert partitions(tick(hour_is_ready, first.cursor)) == [HOUR]


def test_a_flag_written_again_changes_nothing(lake: LakeResource, tick: Any, launched: Any) -> None:
    folder = land(lake, "visits", HOUR, {"a.json": "{}\n"})
    first = tick(hour_is_ready)
    launched(first)
    os.utime(folder / "_SUCCESS", ns=(2**61, 2**61))
    assert partitions(tick(hour_is_ready, first.cursor)) == []


def test_an_hour_that_the_command_line_has_run_is_not_run_again(lake: LakeResource, tick: Any, launched: Any) -> None:
    folder = land(lake, "visits", HOUR, {"a.json": "{}\n"})
    land(lake, "visits", "2026-01-05T04", {"a.json": "{}\n"})
    bronze(lake.lake, {HOUR: {HOUR: 1}}, landed={HOUR: fingerprints(lake)[HOUR]})
    first = tick(hour_is_ready)
    assert partitions(first) == ["2026-01-05T04"]
    launched(first)
    assert partitions(tick(hour_is_ready, first.cursor)) == []
    (folder / "straggler.json").write_text("{}\n")
    assert partitions(tick(hour_is_ready, first.cursor)) == [HOUR]


def test_an_empty_hour_runs_and_is_reported(lake: LakeResource, tick: Any, capsys: pytest.CaptureFixture[str]) -> None:
    land(lake, "visits", HOUR, {})
    data = tick(hour_is_ready)
    assert partitions(data) == [HOUR]
    assert f"hour {HOUR} is flagged as complete and has no data" in capsys.readouterr().err


def test_a_large_delivery_is_asked_for_in_slices_oldest_first(lake: LakeResource, tick: Any, launched: Any) -> None:
    hours = [f"2026-01-0{day}T{hour:02d}" for day in (5, 6) for hour in range(24)]
    for hour in hours[:30]:
        land(lake, "visits", hour, {"a.json": hour})
    first = tick(hour_is_ready)
    launched(first)
    second = tick(hour_is_ready, first.cursor)
    launched(second)
    assert partitions(first) == hours[:MOST_AT_ONCE]
    assert partitions(second) == hours[MOST_AT_ONCE:30]
    assert partitions(tick(hour_is_ready, second.cursor)) == []


@pytest.mark.parametrize("stray", ["1999-12-31T23", "2099-01-01T00", "2026-01-05T99", "not-a-dayT01"])
def test_a_folder_that_is_no_hour_is_reported_and_stops_nothing(
    lake: LakeResource, tick: Any, capsys: pytest.CaptureFixture[str], stray: str
) -> None:
    land(lake, "visits", HOUR, {"a.json": "{}\n"})
    folder = lake.landing_path / "visits" / f"date={stray.split('T')[0]}" / f"hour={stray.split('T')[1]}"
    folder.mkdir(parents=True)
    (folder / "_SUCCESS").touch()
    data = tick(hour_is_ready)
    assert partitions(data) == [HOUR]
    assert stray in capsys.readouterr().err
    tick(hour_is_ready, data.cursor)
    assert stray not in capsys.readouterr().err, "said once, not at every tick"


def test_an_hour_of_the_future_runs_when_its_time_has_come(
    lake: LakeResource, tick: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(lake, "visits", HOUR, {"a.json": "{}\n"})
    with monkeypatch.context() as earlier:
        until_then = dg.HourlyPartitionsDefinition(
            start_date="2026-01-01T00", end_date="2026-01-05T03", fmt="%Y-%m-%dT%H"
        )
        earlier.setattr("assets.staleness.HOURS", until_then)
        before = tick(hour_is_ready)
    assert partitions(before) == []
    assert partitions(tick(hour_is_ready, before.cursor)) == [HOUR]


def test_a_delivery_of_users_starts_its_day_once_and_again_when_it_changes(
    lake: LakeResource, tick: Any, launched: Any
) -> None:
    folder = land(lake, "users", "2026-01-05", {"users.json": "{}\n"})
    land(lake, "users", "2026-01-06", {"users.json": "{}\n"}, flag=False)
    first = tick(users_landed)
    launched(first)
    assert partitions(first) == ["2026-01-05"]
    assert partitions(tick(users_landed, first.cursor)) == []
    (folder / "more.json").write_text("{}\n")
    assert partitions(tick(users_landed, first.cursor)) == ["2026-01-05"]


def test_only_the_newest_delivery_of_devices_is_loaded(lake: LakeResource, tick: Any, launched: Any) -> None:
    older = land(lake, "devices", "2026-01-05", {"devices.csv": "a;b\n"})
    land(lake, "devices", "2026-01-06", {"devices.csv": "a;b\n"})
    first = tick(devices_landed)
    assert [key.split()[1] for key in launched(first)] == ["2026-01-06"]
    (older / "more.csv").write_text("a;b\n")
    assert keys(tick(devices_landed, first.cursor)) == []


def test_a_landed_log_is_split_once_and_again_when_it_has_grown(lake: LakeResource, tick: Any) -> None:
    folder = lake.landing_path / "access_logs"
    folder.mkdir()
    log = folder / "access.log"
    log.write_text(LINE)
    first = keys(tick(access_logs_landed))
    assert len(first) == 1
    assert keys(tick(access_logs_landed)) == first, "the same content, the same run"
    split_by_hour(log, lake.landing_path, hour_of_combined, now=datetime.now(timezone.utc))
    assert keys(tick(access_logs_landed)) == []
    with log.open("a") as stream:
        stream.write(LINE)
    assert len(keys(tick(access_logs_landed))) == 1


def test_the_hours_of_a_split_log_are_ready(lake: LakeResource, tick: Any) -> None:
    folder = lake.landing_path / "access_logs"
    folder.mkdir()
    (folder / "access.log").write_text(LINE)
    assert partitions(tick(hour_is_ready)) == []
    split_by_hour(folder / "access.log", lake.landing_path, hour_of_combined, now=datetime.now(timezone.utc))
    assert partitions(tick(hour_is_ready)) == [HOUR]


def test_days_that_are_over_are_remembered_as_one_entry_each(lake: LakeResource, tick: Any) -> None:
    for day in (5, 6, 7):
        for hour in range(8):
            land(lake, "visits", f"2026-01-{day:02d}T{hour:02d}", {"a.json": "{}"})
    first = tick(hour_is_ready)
    assert len(partitions(first)) == 24
    assert json.loads(first.cursor) == {}, "remembered is what is published"
    bronze(lake.lake, {hour: {hour: 1} for hour in partitions(first)}, landed=fingerprints(lake))
    second = tick(hour_is_ready, first.cursor)
    assert len(json.loads(second.cursor)) == 2 + 8
    assert partitions(second) == []


def test_a_late_file_in_a_day_that_is_over_asks_for_its_hour_alone(
    lake: LakeResource, tick: Any, launched: Any
) -> None:
    hours = [f"2026-01-05T{hour:02d}" for hour in range(4)]
    for hour in (*hours, "2026-01-06T00"):
        land(lake, "visits", hour, {"a.json": "{}"})
    prints = fingerprints(lake)
    bronze(lake.lake, {hour: {hour: 1} for hour in prints}, landed=prints)
    first = tick(hour_is_ready)
    land(lake, "visits", hours[2], {"late.json": "{}"})
    second = tick(hour_is_ready, first.cursor)
    assert launched(second)
    assert partitions(second) == [hours[2]]
    assert partitions(tick(hour_is_ready, second.cursor)) == []
