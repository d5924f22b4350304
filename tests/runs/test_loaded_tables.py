"""landing.legacy_visits, .users_table and .devices_table: what a run of the assets loads.

Patterns: Full Loader, Incremental Loader.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import dagster as dg
import psycopg
import pytest

from assets import sources
from assets.sources import split_access_logs
from blogdata.operate import config
from blogdata.operate.config import Settings, TableSettings
from blogdata.runs.dataset import calendar
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from blogdata.runs.refresh_request import Request
from lineage import tables

CALENDAR = calendar("2026-01-05", "2026-01-05")


@pytest.fixture
def loading(tmp_path: Path, database: str) -> Settings:
    """A deployment that names all tables."""
    (tmp_path / "blogdata.toml").write_text(
        f'[tables]\nurl = "{database}"\ndevices = "devices"\nusers = "users"\nlegacy_visits = "legacy_visits"\n'
        'since = "2026-01-05"\n'
    )
    return config.load({"HOME": str(tmp_path), "BLOGDATA_HOME": str(tmp_path)})


def materialized(settings: Settings, asset: dg.AssetsDefinition, partition: str | None) -> dict[str, object]:
    with dg.DagsterInstance.ephemeral() as instance:
        resources = {"deployment": DeploymentResource(home=str(settings.home))}
        result = dg.materialize([asset], instance=instance, partition_key=partition, resources=resources)
        (event,) = result.asset_materializations_for_node(asset.node_def.name)
        return {name: value.value for name, value in event.metadata.items()}


def test_incremental_loader_backfills_the_window_of_the_run_and_no_other(loading: Settings, database: str) -> None:
    devices, users, legacy_visits = sources.configured(loading, CALENDAR)
    with psycopg.connect(database) as source:
        hours = "(SELECT n, '{}'::timestamptz + n * interval '1 hour' AS at FROM generate_series(0, {}) n) t"
        source.execute(
            f"{tables.USERS}; INSERT INTO users SELECT n, 'u', NULL, at, at, at, at FROM "
            + hours.format("2026-01-04 22:30+00", 3)
            + f"; {tables.DEVICES}; INSERT INTO devices VALUES ('PC', 'One', '14'); {tables.LEGACY_VISITS}; "
            "INSERT INTO legacy_visits (visit_id, event_time, user_id, keep_private, page, ingestion_time) "
            "SELECT n, at, n, false, '/', at FROM " + hours.format("2026-01-05 00:30+00", 12)
        )
    found = materialized(loading, legacy_visits, "2026-01-05T10")
    assert (found["windows"], found["rows"], found["new"]) == ("2026-01-05T10..2026-01-05T10", 1, 1)
    found = materialized(loading, users, "2026-01-05")
    assert (found["windows"], found["rows"], found["new"]) == ("2026-01-05..2026-01-05", 2, 2)
    landed = sorted(str(file.relative_to(loading.landing)) for file in loading.landing.rglob("*.json*"))
    assert landed == [
        "users/date=2026-01-05/users_table-1.jsonl",
        "visits/date=2026-01-05/hour=10/legacy_visits-1.jsonl",
    ]

    # The devices are loaded whenever they are asked for.
    assert [materialized(loading, devices, None)["changed"] for _ in range(2)] == [True, False]
    (file,) = loading.landing.glob("devices/*/devices.json")
    assert json.loads(file.read_text()) == {"type": "PC", "full_name": "One", "version": "14"}


def test_tables_are_in_the_lineage_where_they_are_named(loading: Settings) -> None:
    assert sources.configured(replace(loading, tables=TableSettings()), CALENDAR) == []
    specs = {spec.key.to_user_string(): spec for spec in sources.specs(sources.configured(loading, CALENDAR))}
    above = {name: sorted(dep.asset_key.to_user_string() for dep in spec.deps) for name, spec in specs.items()}
    assert above["landing/devices"] == ["landing/devices_table"]
    assert above["landing/users"] == ["landing/users_table"]
    assert above["landing/visits"] == ["landing/hourly_access_logs", "landing/legacy_visits"]


def test_a_table_that_cannot_be_loaded_is_in_no_other_tables_way(loading: Settings, database: str) -> None:
    with psycopg.connect(database) as source:
        source.execute("CREATE TABLE devices AS SELECT 'PC' AS type, 'One' AS full_name, 14 AS version")

    @dg.graph
    def alone() -> None:
        split_access_logs()

    resources = {
        "lake": LakeResource(root=str(loading.lake), landing=str(loading.landing)),
        "deployment": DeploymentResource(home=str(loading.home)),
        "request": Request(),
    }
    result = alone.execute_in_process(resources=resources, raise_on_error=False)
    (failed,) = result.get_step_failure_events()
    said = str(failed.step_failure_data.error)
    assert [file.name for file in loading.landing.rglob("*.json")] == ["devices.json"]
    # All of them are named: a person mends them at once, and not one after the other.
    assert "2 tables were not loaded" in said
    assert "users: there is no such table" in said
    assert "legacy_visits: there is no such table" in said
