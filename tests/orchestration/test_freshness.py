"""What a contract promises to be fresh has Dagster's freshness policy."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import definitions
from orchestration.names import asset_key
from quality.contracts import EVERY
from services import config


def test_every_freshness_promise_has_an_asset_policy(tmp_path: Path) -> None:
    graph = definitions.build(config.load(overrides={"BLOGDATA_HOME": str(tmp_path)})).resolve_asset_graph()
    policies = {name: graph.get(asset_key(name)).freshness_policy for name in EVERY}
    promised = {name for name, contract in EVERY.items() if contract.freshness_hours is not None}
    assert {name for name, policy in policies.items() if policy is not None} == promised
    # A day is published within six hours of its end, so the newest one is never older than a day and six hours.
    assert policies["gold.page_stats"].fail_window.to_timedelta() == timedelta(hours=24 + 6)
    assert policies["bronze.visits"].fail_window.to_timedelta() == timedelta(hours=1 + 1)
