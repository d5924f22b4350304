"""The editors' files are requested day by day, and only for branches that lack the published version."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from data_flow.page_file_runs import DAY, Files
from sensors.page_files import page_files_due
from sensors.request_throttle import MOST_AT_ONCE

BEFORE = "2025-12-31"
due = page_files_due()


@pytest.fixture
def files(tmp_path: Any, instance: dg.DagsterInstance) -> Files:
    return Files(tmp_path, instance)


@pytest.fixture
def tick(files: Files, instance: dg.DagsterInstance) -> Any:
    def evaluate() -> Any:
        context = dg.build_sensor_context(
            instance=instance, definitions=files.definitions, resources={"lake": files.access}
        )
        return due.evaluate_tick(context)

    return evaluate


def asked(data: Any) -> dict[str, list[str]]:
    return {
        request.partition_key: [key.path[-1].removeprefix("page_stats_") for key in request.asset_selection]
        for request in data.run_requests or ()
    }


def test_an_empty_lake_asks_for_no_files(tick: Any) -> None:
    assert tick().skip_message == "the files have every day that is published"


def test_each_day_asks_for_its_branches(files: Files, tick: Any) -> None:
    files.publish(BEFORE, DAY)
    assert asked(tick()) == {DAY: ["csv", "parquet", "compared"], BEFORE: ["csv"]}


def test_only_the_failed_branch_is_asked_for(files: Files, tick: Any, launched: Any) -> None:
    files.publish(DAY)
    blocking = files.file("csv", DAY)
    blocking.mkdir(parents=True)
    (first,) = launched(tick())
    assert "asked for" in tick().skip_message
    files.run(DAY)
    (again,) = tick().run_requests
    assert asked(tick()) == {DAY: ["csv", "compared"]}
    assert again.run_key != first
    blocking.rmdir()
    assert files.run(DAY, "csv").success
    assert asked(tick()) == {DAY: ["compared"]}, "the comparison was cut off"
    assert files.run(DAY, "compared").success
    assert tick().run_requests == []


def test_a_long_history_comes_in_parts(files: Files, tick: Any) -> None:
    days = [f"2026-01-{day:02d}" for day in range(1, 32)]
    files.publish(*days)
    assert list(asked(tick())) == sorted(days, reverse=True)[:MOST_AT_ONCE]
