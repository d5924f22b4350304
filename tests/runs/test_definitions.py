"""All definitions that Dagster's UI and daemon load are valid; its buttons compute nothing that has no input.

Partitions begin and end with the data, so that Dagster shows no missing ones outside of them.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
import yaml

import published
from blogdata.cli import ui_command
from blogdata.contract.partitions import Grain, between, finer, key_of
from blogdata.operate import config, dagster_home
from blogdata.operate.config import Settings
from blogdata.runs.checks import LEDGER
from blogdata.runs.computation import Done
from blogdata.runs.driver import Driver
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.names import asset_key
from blogdata.runs.zone import days_of
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


def settings_of(home: LakeResource) -> Settings:
    return config.load(overrides={"BLOGDATA_HOME": str(home.landing_path.parent)})


def defined(lake: LakeResource) -> dg.Definitions:
    return build(settings_of(lake))


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


HOURLY, DAILY, WEEKLY = "silver.visits", "gold.page_stats", "gold.visits_weekly"


@pytest.fixture
def home(tmp_path: Path) -> LakeResource:
    return published.deployment(tmp_path / "home")


def land_hour(home: LakeResource, key: str) -> None:
    published.land(home, "visits", key, {"visits.json": "{}\n"}, flag=False)


def keys(settings: Settings, dataset: str) -> list[str]:
    """List the partition keys of a dataset in the definitions that a new process loads."""
    found = build(settings).resolve_assets_def(asset_key(dataset)).partitions_def
    assert isinstance(found, dg.TimeWindowPartitionsDefinition)
    return list(found.get_partition_keys())


def test_published_data_move_both_ends_but_their_week_does_not(home: LakeResource) -> None:
    land_hour(home, "2026-01-08T00")
    published.silver(home.lake, {"2026-01-07T23": 1, "2026-01-08T00": 1, "2026-01-09T00": 1}, read=0)
    published.publish(home.lake, "gold.visits_weekly", "week", {"2026-01-05": 3})
    for dataset in ("silver.visits", "gold.visits_weekly"):
        assert home.events.publications(dataset), "the log has recorded it"
    assert days_of(settings_of(home)) == ("2026-01-07", "2026-01-09")


def test_partitions_end_where_the_data_do_rounded_up(home: LakeResource) -> None:
    settings = settings_of(home)
    land_hour(home, "2026-01-07T03")
    land_hour(home, "2026-01-08T05")
    assert keys(settings, HOURLY) == [
        *finer("2026-01-07", Grain.DAY, Grain.HOUR),
        *finer("2026-01-08", Grain.DAY, Grain.HOUR),
    ]
    assert keys(settings, DAILY) == ["2026-01-07", "2026-01-08"]
    assert keys(settings, WEEKLY) == ["2026-01-05"]
    land_hour(home, "2026-01-12T00")
    assert keys(settings, DAILY) == list(between("2026-01-07", "2026-01-12", Grain.DAY))
    assert keys(settings, WEEKLY) == ["2026-01-05", "2026-01-12"]
    # Datasets that run by themselves have a partition for each hour until now.
    automatic = replace(settings, run_automatically=True)
    assert keys(automatic, DAILY)[-1] == key_of(datetime.now(timezone.utc), Grain.DAY)
    assert keys(automatic, DAILY)[0] == "2026-01-07"
