"""Independent runs overlap up to the limits, and newly landed data does not wait for a backfill.

The queue, its daemon's iterations, `dagster.yaml`, the jobs and their pools are those of a deployment. Only the
processes of the runs are missing: the queue starts runs, and the test ends them.
"""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import BACKFILL_ID_TAG, PARTITION_NAME_TAG
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon

from blogdata.deliver import page_files
from blogdata.operate import dagster_home
from blogdata.operate.config import Settings, load
from blogdata.patterns.data_flow.concurrent_runner import AGAIN, NEW_DATA, pool_of
from blogdata.runs.refresh_request import JOB
from definitions import build
from quality.contracts import CONTRACTS

NOWHERE = Path("/nowhere")
BACKFILL = {BACKFILL_ID_TAG: "year"}
DAYS = tuple((date(2026, 1, 1) + timedelta(days=count)).isoformat() for count in range(12))
LAUNCHER = "\nrun_launcher:\n  module: dagster._core.test_utils\n  class: MockedRunLauncher\n"


@pytest.fixture(scope="module")
def deployed() -> dg.Definitions:
    return build(Settings(home=NOWHERE, landing=NOWHERE, lake=NOWHERE, jars=NOWHERE))


class Queue:
    def __init__(self, instance: dg.DagsterInstance, definitions: dg.Definitions) -> None:
        self.instance, self.job = instance, definitions.resolve_job_def
        self.daemon = QueuedRunCoordinatorDaemon(interval_seconds=1)
        assets = definitions.resolve_implicit_global_asset_job_def()
        self.files = assets.get_subset(asset_selection={page_files.KEY})

    def add(self, job: dg.JobDefinition, tags: Mapping[str, str] | None = None) -> str:
        place = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("blogdata"), "blogdata")
        run = self.instance.create_run_for_job(
            job_def=job,
            tags={**job.tags, **(tags or {})},
            status=dg.DagsterRunStatus.QUEUED,
            remote_job_origin=RemoteJobOrigin(place, job.name),
        )
        return run.run_id

    def tick(self) -> None:
        workspace: Any = SimpleNamespace(instance=self.instance, create_request_context=lambda: None)
        list(self.daemon.run_iteration(workspace))

    def running(self) -> list[dg.DagsterRun]:
        return list(self.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTING])))

    def count(self, status: dg.DagsterRunStatus) -> int:
        return self.instance.get_runs_count(dg.RunsFilter(statuses=[status]))

    def succeed(self, *runs: dg.DagsterRun) -> None:
        for run in runs:
            event = dg.DagsterEvent(dg.DagsterEventType.RUN_SUCCESS.value, job_name=run.job_name)
            self.instance.report_dagster_event(event, run_id=run.run_id)


@pytest.fixture
def queue(tmp_path: Path, deployed: dg.Definitions) -> Iterator[Queue]:
    home = dagster_home.render(load({"BLOGDATA_HOME": str(tmp_path)}))
    with (home / "dagster.yaml").open("a", encoding="utf-8") as file:
        file.write(LAUNCHER)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield Queue(instance, deployed)


def test_a_backfill_leaves_slots_to_new_data(queue: Queue) -> None:
    for day in DAYS:
        queue.add(queue.files, {**BACKFILL, PARTITION_NAME_TAG: day})
    queue.tick()
    first, second = queue.running()
    assert {run.tags[PARTITION_NAME_TAG] for run in (first, second)} == set(DAYS[:2]), "two, not four"

    # A new hour lands behind ten queued runs, while none of the running ones ends.
    hour = queue.add(queue.job(JOB))
    queue.tick()
    assert hour in [run.run_id for run in queue.running()]
    queue.instance.report_run_failed(first)
    queue.succeed(second)

    files = [queue.add(queue.job("page_files"), {PARTITION_NAME_TAG: day}) for day in DAYS[:3]]
    while queue.count(dg.DagsterRunStatus.QUEUED):
        queue.tick()
        tags = [run.tags for run in queue.running()]
        assert len(tags) <= 5
        assert sum(BACKFILL_ID_TAG in run for run in tags) <= 2
        assert sum(run.get("blogdata/lane") == "background" for run in tags) <= 1
        queue.succeed(*queue.running())
    done = queue.count(dg.DagsterRunStatus.SUCCESS)
    assert done == len(DAYS) - 1 + len(files) + 1, "a failed run stops no other"


def test_replays_leave_a_slot_to_a_landed_hour(queue: Queue) -> None:
    """Replays, and events with a span of a year: each is a run of the same job, and all are queued before the hour."""
    again = [queue.add(queue.job(JOB), AGAIN) for _ in range(24)]
    for day in DAYS[:6]:
        queue.add(queue.files, {**BACKFILL, PARTITION_NAME_TAG: day})
        queue.add(queue.job("page_files"), {PARTITION_NAME_TAG: day})
    queue.tick()
    running = {run.run_id for run in queue.running()}
    assert (len(running), running & {*again}) == (4, {again[0]}), "in turn, one of them at a time"
    hour = queue.add(queue.job(JOB), NEW_DATA)
    queue.tick()
    assert {run.run_id for run in queue.running()} == {*running, hour}


def test_every_dataset_writes_in_its_tables_pool(deployed: dg.Definitions) -> None:
    pools = {
        ".".join(key.path): {op.pool for op in asset.node_def.iterate_op_defs()}
        for asset in deployed.assets or ()
        if isinstance(asset, dg.AssetsDefinition)
        for key in asset.keys
    }
    for dataset, contract in CONTRACTS.items():
        assert pools[dataset] == {pool_of(contract.main)}
    assert len({pool_of(dataset) for dataset in CONTRACTS}) == len(CONTRACTS)
