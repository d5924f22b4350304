"""All definitions that Dagster's UI and daemon load are valid; a run resolves only its own job."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from analytics.definitions import defs as analytics
from blogdata.services.config import Settings
from blogdata.services.postgres_settings import PostgresSettings
from definitions import build

NOWHERE = Path("/nowhere")


@pytest.mark.parametrize("url", ["", "postgresql://nowhere/nothing"])
def test_definitions_load_with_and_without_a_database(url: str) -> None:
    settings = Settings(home=NOWHERE, landing=NOWHERE, lake=NOWHERE, jars=NOWHERE, postgres=PostgresSettings(url=url))
    dg.Definitions.validate_loadable(build(settings))


def test_an_asset_and_its_checks_are_of_one_location() -> None:
    """A page selects an asset's checks with it, and a run is given the definitions of the asset's location only."""
    platform = build(Settings(home=NOWHERE, landing=NOWHERE, lake=NOWHERE, jars=NOWHERE))
    assets, checks = [], []
    for location in (platform, analytics()):
        graph = location.resolve_asset_graph()
        assets.append(graph.materializable_asset_keys | {spec.key for spec in _specs(location)})
        checks.append({key.asset_key for key in graph.asset_check_keys})
    assert all(assets)
    assert all(checks)
    assert assets[0] & assets[1] == set(), "of several locations that supply an asset, the pages take one"
    assert (checks[0] - assets[0], checks[1] - assets[1]) == (set(), set())


def _specs(location: dg.Definitions) -> list[dg.AssetSpec]:
    return [asset for asset in location.assets or () if isinstance(asset, dg.AssetSpec)]
