"""The assets of the landing zone: what a run of them loads from tables, and which runs split the landed logs.

Patterns: Full Loader, Incremental Loader, In-Place Overwriter.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest

from assets import sources, table_loads
from assets.sources import split_access_logs
from blogdata.landing.landed_persons import Identifiers
from blogdata.landing.lines import FILLER
from blogdata.landing.log_splitter import LOGS, unsplit_logs
from blogdata.landing.suppression_list import SuppressionList
from blogdata.operate import config
from blogdata.operate.config import Settings, TableSettings
from blogdata.runs.dataset import calendar
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from blogdata.runs.refresh_request import Request

CALENDAR = calendar("2026-01-05", "2026-01-05")


@pytest.fixture
def loading(tmp_path: Path, database: str) -> Settings:
    """A deployment that names all tables."""
    (tmp_path / "blogdata.toml").write_text(
        f'[tables]\nurl = "{database}"\ndevices = "devices"\nusers = "users"\nlegacy_visits = "visits"\n'
        'since = "2026-01-05"\n'
    )
    return config.load({"HOME": str(tmp_path), "BLOGDATA_HOME": str(tmp_path)})


VISITS = (
    "CREATE TABLE visits AS SELECT visit_id, at AS event_time, user_id, false AS keep_private, '/' AS page,"
    " ''::text AS referral, ''::text AS ad_id, ''::text AS ip, login, at AS connected_since, ''::text AS browser,"
    " ''::text AS browser_version, ''::text AS network_type, ''::text AS device_type, ''::text AS device_version,"
    " at AS ingestion_time, false AS is_deleted FROM"
)


LINE = b'192.0.2.1 - - [05/Jan/2026:10:05:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"\n'


@dg.graph
def splitting() -> None:
    split_access_logs()


def run_split(settings: Settings, **asked: Any) -> dg.ExecuteInProcessResult:
    resources = {
        "lake": LakeResource(root=str(settings.lake), landing=str(settings.landing)),
        "deployment": DeploymentResource(home=str(settings.home)),
        "request": Request(**asked),
    }
    return splitting.execute_in_process(resources=resources, raise_on_error=False)


def materialized(settings: Settings, asset: dg.AssetsDefinition, partition: str | None) -> dict[str, object]:
    with dg.DagsterInstance.ephemeral() as instance:
        resources = {"deployment": DeploymentResource(home=str(settings.home))}
        result = dg.materialize([asset], instance=instance, partition_key=partition, resources=resources)
        (event,) = result.asset_materializations_for_node(asset.node_def.name)
        return {name: value.value for name, value in event.metadata.items()}


def test_incremental_loader_backfills_the_window_of_the_run_and_no_other(loading: Settings, database: str) -> None:
    devices, users, legacy_visits = sources.configured(loading, CALENDAR)
    with psycopg.connect(database) as source:
        source.execute(
            "CREATE TABLE users AS SELECT n AS id, 'u' AS login, NULL::text AS email, at AS registered_datetime,"
            " at AS first_connection_datetime, at AS last_connection_datetime, at AS updated_at, false AS is_deleted"
            " FROM (SELECT n, '2026-01-04 22:30+00'::timestamptz + n * interval '1 hour' AS at"
            " FROM generate_series(0, 3) n) t;"
            "CREATE TABLE devices AS SELECT 'PC' AS type, 'One' AS full_name, 14 AS version;"
            f"{VISITS} (SELECT 'v' || n AS visit_id, '2026-01-05 00:30+00'::timestamptz + n * interval '1 hour' AS at,"
            " 'u' AS user_id, '' AS login FROM generate_series(0, 12) n) t"
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


def test_incremental_loader_lands_nothing_of_forgotten_persons(loading: Settings, database: str) -> None:
    bob = Identifiers(user_ids=frozenset({"user-bob-1"}), logins=frozenset({"bob"}))
    SuppressionList.of(loading).add(bob, datetime(2026, 5, 1, tzinfo=timezone.utc).timestamp())
    with psycopg.connect(database) as source:
        source.execute(
            f"{VISITS} (SELECT 'v' AS visit_id, '2026-01-05 10:05+00'::timestamptz AS at, user_id, login FROM"
            " (VALUES ('user-bob-1', ''), ('other', 'bob'), ('user-ann-2', 'ann')) v(user_id, login)) t"
        )
    for _ in range(2):
        table_loads.load_windows(loading, table_loads.LEGACY_VISITS, ["2026-01-05T10"])
    # What was overwritten is compared as rows that have not landed; it lands once, with the first load.
    (file,) = loading.landing.rglob("legacy_visits-*")
    left = [line for line in file.read_bytes().splitlines() if line.strip(FILLER)]
    assert [json.loads(line)["user_id"] for line in left] == ["user-ann-2"]


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
    (failed,) = run_split(loading).get_step_failure_events()
    said = str(failed.step_failure_data.error)
    assert [file.name for file in loading.landing.rglob("*.json")] == ["devices.json"]
    # All of them are named: a person mends them at once, and not one after the other.
    assert "2 tables were not loaded" in said
    assert "users: there is no such table" in said
    assert "legacy_visits: there is no such table" in said


@pytest.mark.parametrize(
    ("asked", "splits"),
    [
        ({}, True),
        # `run --for` selects a dataset with everything upstream.
        ({"datasets": ["bronze.visits", "silver.visits"]}, True),
        ({"datasets": ["bronze.users"]}, False),
        ({"datasets": ["bronze.visits"], "only_again": True}, False),
    ],
)
def test_a_run_splits_the_logs_unless_it_computes_nothing_of_them(
    tmp_path: Path, asked: dict[str, Any], splits: bool
) -> None:
    settings = config.load({"HOME": str(tmp_path), "BLOGDATA_HOME": str(tmp_path)})
    log = settings.landing / LOGS / "access.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(LINE)
    assert run_split(settings, **asked).success
    parts = [part.read_bytes() for part in settings.landing.glob("visits/*/*/*.log")]
    assert (parts, unsplit_logs(settings.landing)) == (([LINE], []) if splits else ([], [log]))
