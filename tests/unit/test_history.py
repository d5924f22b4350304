"""Partitions begin and end with the data, so that Dagster shows no missing partitions outside of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import dagster as dg
import pytest

from blogdata.contract.partitions import Grain, between, finer, key_of
from blogdata.operate.config import Settings
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.names import asset_key
from blogdata.runs.zone import days_of
from definitions import build
from published import deployment, land, publish, silver

HOURLY, DAILY, WEEKLY = "silver.visits", "gold.page_stats", "gold.visits_weekly"


@pytest.fixture
def home(tmp_path: Path) -> LakeResource:
    return deployment(tmp_path / "home")


def land_hour(home: LakeResource, key: str) -> None:
    land(home, "visits", key, {"visits.json": "{}\n"}, flag=False)


def settings_of(home: LakeResource) -> Settings:
    folder = home.landing_path.parent
    return Settings(home=folder, landing=home.landing_path, lake=folder / "lake", jars=folder)


def keys(settings: Settings, dataset: str) -> list[str]:
    """List the partition keys of a dataset in the definitions that a new process loads."""
    found = build(settings).resolve_assets_def(asset_key(dataset)).partitions_def
    assert isinstance(found, dg.TimeWindowPartitionsDefinition)
    return list(found.get_partition_keys())


def test_published_data_move_both_ends_but_their_week_does_not(home: LakeResource) -> None:
    land_hour(home, "2026-01-08T00")
    silver(home.lake, {"2026-01-07T23": 1, "2026-01-08T00": 1, "2026-01-09T00": 1}, read=0)
    publish(home.lake, "gold.visits_weekly", "week", {"2026-01-05": 3})
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
