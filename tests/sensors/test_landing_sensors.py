"""Readiness sensors: what has landed completely starts one run, and nothing else does."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from typing import Any

import dagster as dg
import pytest

from assets.staleness import landed
from patterns.core.partitions import Grain
from patterns.ingestion.combined_log import hour_of_combined
from patterns.ingestion.log_splitter import split_by_hour
from published import bronze, land
from resources.lake import LakeResource
from sensors import access_logs_landed, devices_landed, hour_is_ready, users_landed
from sensors.landing import MOST_AT_ONCE

HOUR = "2026-01-05T03"
LINE = '10.0.0.1 - - [05/Jan/2026:03:04:05 +0000] "GET / HTTP/1.1" 200 5 "-" "Mozilla/5.0"\n'


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


def test_the_next_tick_does_not_start_the_hour_again(lake: LakeResource, tick: Any) -> None:
    land(lake, "visits", HOUR, {"a.json": "{}\n"})
    first = tick(hour_is_ready)
    second = tick(hour_is_ready, first.cursor)
    assert partitions(second) == []
    assert json.loads(second.cursor) == json.loads(first.cursor)


def test_a_restart_between_two_ticks_starts_nothing_again(lake: LakeResource, defs: dg.Definitions) -> None:
    land(lake, "visits", HOUR, {"a.json": "{}\n"})
    cursor = None
    asked = []
    for _ in range(3):
        with dg.DagsterInstance.ephemeral() as restarted:
            context = dg.build_sensor_context(
                instance=restarted, cursor=cursor, definitions=defs, resources={"lake": lake}
            )
            data = hour_is_ready.evaluate_tick(context)
        cursor = data.cursor
        asked += keys(data)
    assert len(asked) == 1


def test_a_tick_that_died_before_its_cursor_was_kept_asks_for_the_same_run(lake: LakeResource, tick: Any) -> None:
    land(lake, "visits", HOUR, {"a.json": "{}\n"})
    # Dagster starts nothing for a run key it knows.
    assert keys(tick(hour_is_ready)) == keys(tick(hour_is_ready))


def test_a_file_after_the_flag_starts_the_hour_again_and_is_named(
    lake: LakeResource, tick: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = land(lake, "visits", HOUR, {"a.json": "{}\n"})
    first = tick(hour_is_ready)
    (folder / "straggler.json").write_text("{}\n")
    os.utime(folder / "straggler.json", ns=(2**61, 2**61))
    second = tick(hour_is_ready, first.cursor)
    assert partitions(second) == [HOUR]
    assert keys(second) != keys(first)
    assert "straggler.json" in capsys.readouterr().err
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


def test_a_flag_written_again_changes_nothing(lake: LakeResource, tick: Any) -> None:
    folder = land(lake, "visits", HOUR, {"a.json": "{}\n"})
    first = tick(hour_is_ready)
    os.utime(folder / "_SUCCESS", ns=(2**61, 2**61))
    assert partitions(tick(hour_is_ready, first.cursor)) == []


def test_an_hour_that_the_command_line_has_run_is_not_run_again(lake: LakeResource, tick: Any) -> None:
    folder = land(lake, "visits", HOUR, {"a.json": "{}\n"})
    land(lake, "visits", "2026-01-05T04", {"a.json": "{}\n"})
    there = {hour.key: hour.fingerprint for hour in landed(lake.landing_path, "visits", Grain.HOUR)}
    bronze(lake.lake, {HOUR: {HOUR: 1}}, landed={HOUR: there[HOUR]})
    first = tick(hour_is_ready)
    assert partitions(first) == ["2026-01-05T04"]
    assert partitions(tick(hour_is_ready, first.cursor)) == []
    (folder / "straggler.json").write_text("{}\n")
    assert partitions(tick(hour_is_ready, first.cursor)) == [HOUR]


def test_an_empty_hour_runs_and_is_reported(lake: LakeResource, tick: Any, capsys: pytest.CaptureFixture[str]) -> None:
    land(lake, "visits", HOUR, {})
    data = tick(hour_is_ready)
    assert partitions(data) == [HOUR]
    assert f"hour {HOUR} is flagged as complete and has no data" in capsys.readouterr().err


def test_a_large_delivery_is_asked_for_in_slices_oldest_first(lake: LakeResource, tick: Any) -> None:
    hours = [f"2026-01-0{day}T{hour:02d}" for day in (5, 6) for hour in range(24)]
    for hour in hours[:30]:
        land(lake, "visits", hour, {"a.json": hour})
    first = tick(hour_is_ready)
    second = tick(hour_is_ready, first.cursor)
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


def test_a_delivery_of_users_starts_its_day_once_and_again_when_it_changes(lake: LakeResource, tick: Any) -> None:
    folder = land(lake, "users", "2026-01-05", {"users.json": "{}\n"})
    land(lake, "users", "2026-01-06", {"users.json": "{}\n"}, flag=False)
    first = tick(users_landed)
    assert partitions(first) == ["2026-01-05"]
    assert partitions(tick(users_landed, first.cursor)) == []
    (folder / "more.json").write_text("{}\n")
    assert partitions(tick(users_landed, first.cursor)) == ["2026-01-05"]


def test_only_the_newest_delivery_of_devices_is_loaded(lake: LakeResource, tick: Any) -> None:
    older = land(lake, "devices", "2026-01-05", {"devices.csv": "a;b\n"})
    land(lake, "devices", "2026-01-06", {"devices.csv": "a;b\n"})
    first = tick(devices_landed)
    assert [key.split("/")[0] for key in keys(first)] == ["2026-01-06"]
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
    assert len(json.loads(first.cursor)) == 2 + 8
    assert partitions(tick(hour_is_ready, first.cursor)) == []


def test_a_late_file_in_a_day_that_is_over_asks_for_its_hour_alone(lake: LakeResource, tick: Any) -> None:
    hours = [f"2026-01-05T{hour:02d}" for hour in range(4)]
    for hour in (*hours, "2026-01-06T00"):
        land(lake, "visits", hour, {"a.json": "{}"})
    first = tick(hour_is_ready)
    prints = {found.key: found.fingerprint for found in landed(lake.landing_path, "visits", Grain.HOUR)}
    bronze(lake.lake, {hour: {hour: 1} for hour in prints}, landed=prints)
    land(lake, "visits", hours[2], {"late.json": "{}"})
    second = tick(hour_is_ready, first.cursor)
    assert partitions(second) == [hours[2]]
    assert partitions(tick(hour_is_ready, second.cursor)) == []
