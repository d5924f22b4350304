"""The check of the hours that wait for a person, and checks that are only planned."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationPlanned
from dagster._core.events import DagsterEvent

from assets.code import code
from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain
from blogdata.errors import PlatformError
from blogdata.operate import dagster_home
from blogdata.planning.graph import Task
from blogdata.planning.snapshot import landed
from blogdata.runs.checks import WAITING, newest_evaluation
from blogdata.runs.computation import Done
from blogdata.runs.driver import Driver
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.names import asset_key
from blogdata.runs.refresh_request import Request
from blogdata.watch.reading import FLOW
from lineage.deployment import Deployment
from published import bronze
from quality.contracts import CONTRACTS, GRAPH

DATASET = "bronze.visits"
GOOD, BAD, NEXT = "2026-01-05T03", "2026-01-05T04", "2026-01-05T05"


@dataclass(kw_only=True)
class Shown:
    """Reports published hours to Dagster as a step does."""

    contract: Contract
    hours: Sequence[str]

    def report(self, context: Any) -> list[str]:
        for hour in self.hours:
            context.log_event(dg.AssetMaterialization(asset_key(self.contract.dataset), partition=hour))
        return []


class World:
    """A deployment whose bronze is computed by plain code: lines named `torn` cannot be read."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.lake = LakeResource(root=str(deployment.settings.lake), landing=str(deployment.landing))

    def land(self, hour: str, line: bytes = b"{}") -> None:
        self.deployment.land(hour, [line])

    def refresh(self) -> bool:
        """Run the step of bronze as the job does."""
        world = self

        class Computed(Driver):
            def _computed(self, task: Task, keys: Sequence[str]) -> Done:
                bad = {key for key in keys if b"torn" in (world.deployment.folder(key) / "visits.json").read_bytes()}
                return world.published(sorted({*keys} - bad), bad)

        @dg.op(required_resource_keys={"lake", "request"})
        def once(context: dg.OpExecutionContext) -> None:
            Computed.run(code(), GRAPH.task_of(DATASET), context)

        @dg.graph
        def alone() -> None:
            once()

        with dagster_home.open_instance(self.deployment.settings) as instance:
            resources = {"lake": self.lake, "request": Request(retry_waiting=False)}
            done = alone.execute_in_process(resources=resources, instance=instance, raise_on_error=False)
        return done.success

    def published(self, good: Sequence[str], bad: set[str]) -> Done:
        error = PlatformError(what="the file is torn", where="visits.json", next_step="land it again")
        done = Done(faults=dict.fromkeys(bad, error))
        if good:
            found = landed(self.deployment.landing, "visits", Grain.HOUR)
            prints = {one.key: one.fingerprint for one in found}
            bronze(self.lake.lake, {key: {key: 1} for key in good}, landed=prints)
            shown: Any = Shown(contract=CONTRACTS[DATASET], hours=good)
            done.publications = [shown]
        return done

    def waiting(self) -> tuple[bool, str | None]:
        """Return whether the check has passed, and its description, as the dataset's page has them."""
        with dagster_home.open_instance(self.deployment.settings) as instance:
            found = newest_evaluation(instance, dg.AssetCheckKey(asset_key(DATASET), WAITING))
        assert found is not None
        return found[0].passed, found[0].description


@pytest.fixture
def world(tmp_path: Path) -> World:
    deployment = Deployment.create(tmp_path / "home")
    deployment.land(GOOD, [b"{}"])
    deployment.land(BAD, [b"torn"])
    return World(deployment)


def test_waiting_tells_hour_reason_and_remedy(world: World) -> None:
    world.refresh()
    text = f"waiting for a person: {BAD}: the file is torn (visits.json); land it again"
    assert world.waiting() == (False, text)
    world.land(NEXT)
    assert world.refresh(), "only the run that finds the bad hour fails, unless it is retried"
    assert world.waiting() == (False, text)
    world.land(BAD)
    assert world.refresh()
    assert world.waiting() == (True, None)


def test_a_check_that_a_run_only_planned_is_not_evaluated(world: World) -> None:
    """A run of an asset's own job plans all of its checks, including those that only sensors evaluate."""
    with dagster_home.open_instance(world.deployment.settings) as instance:
        key = dg.AssetCheckKey(asset_key(DATASET), FLOW)
        instance.report_runless_asset_event(dg.AssetCheckEvaluation(key.asset_key, FLOW, False))
        assert newest_evaluation(instance, key) is not None
        run = instance.create_run_for_job(dg.GraphDefinition(name="planning").to_job())
        planned = DagsterEvent(
            event_type_value=dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED.value,
            job_name=run.job_name,
            event_specific_data=AssetCheckEvaluationPlanned(asset_key=key.asset_key, check_name=FLOW),
        )
        instance.report_dagster_event(planned, run_id=run.run_id)
        assert newest_evaluation(instance, key) is None
