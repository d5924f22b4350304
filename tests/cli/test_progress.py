"""What a run's progress collects of its events."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from blogdata.cli.output import Outcome, Screen
from blogdata.cli.progress import RunProgress
from blogdata.contract.publication import PARTITION_ROWS
from blogdata.operate.dagster_internals import InMemoryJob, execute_run_iterator


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
