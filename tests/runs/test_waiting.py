"""The check of the hours that wait for a person, and checks that are only planned."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationPlanned
from dagster._core.events import DagsterEvent

from blogdata.contract.partitions import Grain
from blogdata.errors import PlatformError
from blogdata.operate import config, dagster_home
from blogdata.planning.snapshot import landed
from blogdata.runs.checks import WAITING, newest_evaluation
from blogdata.runs.computation import Done
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.names import asset_key
from blogdata.watch.reading import FLOW
from published import bronze, deployment, land
from quality.contracts import CONTRACTS
from runs.stepped import step

DATASET = "bronze.visits"
GOOD, BAD, NEXT = "2026-01-05T03", "2026-01-05T04", "2026-01-05T05"


@pytest.fixture
def home(tmp_path: Path) -> LakeResource:
    return deployment(tmp_path / "home")


def opened(home: LakeResource) -> dg.DagsterInstance:
    return dagster_home.open_instance(config.load(overrides={"BLOGDATA_HOME": str(home.landing_path.parent)}))


def refresh(home: LakeResource) -> bool:
    """Run the step of bronze, whose lines `torn` cannot be read; return whether it succeeded."""

    def work(keys: Sequence[str]) -> Done:
        found = {one.key: one for one in landed(home.landing_path, "visits", Grain.HOUR)}
        bad = {key for key in keys if "torn" in (found[key].folder / "a.json").read_text()}
        good = sorted({*keys} - bad)
        error = PlatformError(what="the file is torn", where="visits.json", next_step="land it again")
        done = Done(faults=dict.fromkeys(bad, error))
        if good:
            prints = {key: found[key].fingerprint for key in good}
            bronze(home.lake, {key: {key: 1} for key in good}, landed=prints)

            def report(context: Any) -> list[str]:
                for hour in good:
                    context.log_event(dg.AssetMaterialization(asset_key(DATASET), partition=hour))
                return []

            published: Any = SimpleNamespace(contract=CONTRACTS[DATASET], report=report)
            done.publications = [published]
        return done

    with opened(home) as instance:
        try:
            step(home, DATASET, work, instance, retry_waiting=False)
        except dg.Failure:
            return False
    return True


def waiting(home: LakeResource) -> tuple[bool, str | None]:
    """Return whether the check has passed, and its description, as the dataset's page has them."""
    with opened(home) as instance:
        found = newest_evaluation(instance, dg.AssetCheckKey(asset_key(DATASET), WAITING))
    assert found is not None
    return found[0].passed, found[0].description


def test_waiting_tells_hour_reason_and_remedy(home: LakeResource) -> None:
    for hour, line in ((GOOD, "{}"), (BAD, "torn")):
        land(home, "visits", hour, {"a.json": line})
    assert not refresh(home)
    text = f"waiting for a person: {BAD}: the file is torn (visits.json); land it again"
    assert waiting(home) == (False, text)
    land(home, "visits", NEXT, {"a.json": "{}"})
    assert refresh(home), "only the run that finds the bad hour fails, unless it is retried"
    assert waiting(home) == (False, text)
    land(home, "visits", BAD, {"a.json": "{} "})
    assert refresh(home)
    assert waiting(home) == (True, None)


def test_a_check_that_a_run_only_planned_is_not_evaluated(home: LakeResource) -> None:
    """A run of an asset's own job plans all of its checks, including those that only sensors evaluate."""
    with opened(home) as instance:
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
