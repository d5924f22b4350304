"""What a run's progress collects of its events."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from blogdata.cli.output import Screen
from blogdata.cli.pipeline import Outcome
from blogdata.cli.progress import RunProgress
from blogdata.lake.commit import PARTITION_ROWS
from blogdata.services.dagster_internals import InMemoryJob, execute_run_iterator


def publishing(dataset: str, rows: int) -> dg.OpDefinition:
    """A step that publishes two partitions."""

    @dg.op(name=dataset.replace(".", "__"), out=dg.Out(dg.Nothing))
    def step() -> Iterator[Any]:
        for part in (1, rows - 1):
            yield dg.AssetMaterialization(dataset.split("."), metadata={PARTITION_ROWS: part, "seconds": 2.0})
        yield dg.Output(None)

    return step


def test_each_step_shows_what_it_has_published_itself() -> None:
    steps = [publishing("gold.page_stats", 30), publishing("gold.sessions_daily", 7)]
    job = dg.GraphDefinition(name="refresh", node_defs=steps).to_job(executor_def=dg.in_process_executor)
    outcome = Outcome()
    progress = RunProgress(Screen(shown=False), outcome)
    with dg.DagsterInstance.ephemeral() as instance:
        for event in execute_run_iterator(InMemoryJob(job), instance.create_run_for_job(job), instance):
            progress.see(event)
    assert sorted(outcome.steps, key=lambda step: str(step["dataset"])) == [
        {"dataset": "gold.page_stats", "rows": 30, "seconds": 2.0},
        {"dataset": "gold.sessions_daily", "rows": 7, "seconds": 2.0},
    ]
    assert outcome.rows == 37


def test_what_has_landed_is_told_and_is_no_published_row(capsys: pytest.CaptureFixture[str]) -> None:
    metadata: dict[str, dict[str, Any]] = {
        "users_table": {"table": "users", "rows": 15, "new": 2},
        "devices_table": {"table": "devices", "rows": 12, "bytes": 700},
        "hourly_access_logs": {"logs": 1, "lines": 5475, "hours": ["2026-01-05T10"]},
    }

    @dg.op(out=dg.Out(dg.Nothing))
    def split_access_logs() -> Iterator[Any]:
        for name, figures in metadata.items():
            yield dg.AssetMaterialization(["landing", name], metadata=figures)
        yield dg.Output(None)

    job = dg.GraphDefinition(name="refresh", node_defs=[split_access_logs]).to_job(executor_def=dg.in_process_executor)
    outcome = Outcome()
    progress = RunProgress(Screen(shown=True), outcome)
    with dg.DagsterInstance.ephemeral() as instance:
        for event in execute_run_iterator(InMemoryJob(job), instance.create_run_for_job(job), instance):
            progress.see(event)
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in said if line and line[0].startswith("landing.")] == [
        ["landing.users_table", "2", "rows", "landed"],
        ["landing.devices_table", "12", "rows", "landed"],
        ["landing.hourly_access_logs", "5,475", "lines", "landed"],
    ]
    assert outcome.rows == 0
    assert [step["landed"] for step in outcome.steps] == ["2 rows", "12 rows", "5,475 lines"]
