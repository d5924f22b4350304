"""All definitions that Dagster's UI and daemon load are valid, and its buttons compute nothing that has no input."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
import yaml

import published
from blogdata.cli import ui_command
from blogdata.operate import config, dagster_home
from blogdata.runs.checks import LEDGER
from blogdata.runs.computation import Done
from blogdata.runs.driver import Driver
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.names import asset_key
from definitions import build
from quality.contracts import CONTRACTS

LANDED, LATE_ONLY, MISSING, LAST = "2026-01-05T03", "2026-01-05T01", "2026-01-05T02", "2026-01-05T04"


@pytest.fixture
def lake(tmp_path: Path) -> LakeResource:
    """A deployment that can have all assets: visits have landed, and tables of a database land, too."""
    (tmp_path / "blogdata.toml").write_text(
        '[postgres]\nurl = "postgresql://nowhere/nothing"\n\n'
        '[tables]\nurl = "postgresql://nowhere/nothing"\nusers = "users"\nlegacy_visits = "visits"\n'
        'since = "2026-01-05"\n'
    )
    home = published.deployment(tmp_path)
    for hour in (LANDED, LAST):
        published.land(home, "visits", hour, {"a.json": "{}"})
    return home


def defined(lake: LakeResource) -> dg.Definitions:
    return build(config.load(overrides={"BLOGDATA_HOME": str(lake.landing_path.parent)}))


def refusal(definitions: dg.Definitions, key: dg.AssetKey, **launched: object) -> str:
    """Launch the asset and those that Dagster executes with it; return the error of the only step that ran."""
    graph = definitions.resolve_asset_graph()
    job = definitions.resolve_implicit_global_asset_job_def()
    together = [*graph.get(key).execution_set_asset_keys]
    done = job.execute_in_process(asset_selection=together, raise_on_error=False, **launched)  # type: ignore[arg-type]
    (failed,) = done.filter_events(lambda event: event.is_step_failure)
    assert not done.filter_events(lambda event: event.is_step_materialization)
    assert not [one for one in done.get_asset_check_evaluations() if one.passed]
    return str(failed.step_failure_data.user_failure_data)


def test_definitions_load(lake: LakeResource) -> None:
    dg.Definitions.validate_loadable(defined(lake))


def test_the_workspace_and_the_ui_call_a_location_the_same() -> None:
    found = yaml.safe_load((ui_command.ROOT / "workspace.yaml").read_text(encoding="utf-8"))
    names = [entry["python_module"]["location_name"] for entry in found["load_from"]]
    assert names == [dagster_home.PLATFORM, dagster_home.ANALYTICS]


def test_a_check_that_can_be_executed_alone_computes_no_dataset(lake: LakeResource) -> None:
    graph = defined(lake).resolve_asset_graph()
    # As Dagster's `canExecuteIndividually`.
    alone = {key for key in graph.asset_check_keys if len(graph.get_execution_set_asset_and_check_keys(key)) <= 1}
    assert {key.name for key in alone} == {"overdue", "flow", "skew", "lag", "sla"}
    of_computations = {key for assets in graph.assets_defs if assets.keys for key in assets.check_keys}
    assert dg.AssetCheckKey(asset_key("silver.visits"), "ledger") in of_computations
    assert of_computations.isdisjoint(alone)


def test_a_run_without_partitions_is_refused_before_anything_is_computed(lake: LakeResource) -> None:
    definitions = defined(lake)
    graph = definitions.resolve_asset_graph()
    # All datasets of a run are built alike.
    kinds = [
        key
        for assets in graph.assets_defs
        if assets.is_executable and assets.partitions_def is not None
        for key in [min(assets.keys)]
        if key.path[0] in ("landing", "serving") or asset_key("silver.visits") in assets.keys
    ]
    assert {key.path[0] for key in kinds} == {"landing", "silver", "serving"}
    for key in kinds:
        assert "is computed by partitions, and the run names none" in refusal(definitions, key), key
    assert not (lake.landing_path.parent / "services" / "spark").exists()


def test_partitions_whose_input_is_not_published_are_refused_by_name(lake: LakeResource) -> None:
    """An hour of which only late rows came has an input; so has a day of which one hour is published."""
    published.bronze(lake.lake, {LANDED: {LANDED: 2, LATE_ONLY: 1}})
    definitions = defined(lake)
    error = refusal(definitions, asset_key("silver.visits"), partition_key=MISSING)
    assert f"nothing of bronze.visits has been published for {MISSING}" in error
    asked = {"datasets": ["silver.visits"], "again": {"silver.visits": [MISSING]}, "only_again": True}
    done = definitions.resolve_job_def("refresh").execute_in_process(
        run_config={"resources": {"request": {"config": asked}}}, raise_on_error=False
    )
    (failed,) = done.filter_events(lambda event: event.is_step_failure)
    assert f"nothing of bronze.visits has been published for {MISSING}" in str(failed.step_failure_data)
    assert not (lake.landing_path.parent / "services" / "spark").exists()


def test_rows_that_do_not_add_up_stop_what_is_launched_below(
    lake: LakeResource, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, below = asset_key("bronze.visits"), asset_key("bronze.dead_letters")

    def report(context: Any) -> list[str]:
        context.log_event(dg.AssetMaterialization(key, partition=LANDED))
        return [f"bronze.visits:{LEDGER}"]

    unbalanced: Any = SimpleNamespace(contract=CONTRACTS["bronze.visits"], report=report)
    monkeypatch.setattr(Driver, "_computed", lambda driver, task, keys: Done(publications=[unbalanced]))
    done = (
        defined(lake)
        .resolve_implicit_global_asset_job_def()
        .execute_in_process(asset_selection=[key, below], partition_key=LANDED, raise_on_error=False)
    )
    (failed,) = done.filter_events(lambda event: event.is_step_failure)
    assert "checks failed: bronze.visits:ledger" in str(failed.step_failure_data.user_failure_data)
    assert {event.asset_key for event in done.get_asset_materialization_events()} == {key}
