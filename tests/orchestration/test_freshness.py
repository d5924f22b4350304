"""Each freshness promise of a contract becomes a Dagster freshness policy."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import dagster as dg
from dagster._core.definitions.freshness import TimeWindowFreshnessPolicy

import definitions
from blogdata.orchestration.names import asset_key
from blogdata.patterns.ingestion.readiness_marker import ENDED
from blogdata.services import config
from quality.contracts import EVERY


def policies(home: Path) -> dict[str, dg.FreshnessPolicy | None]:
    graph = definitions.build(config.load(overrides={"BLOGDATA_HOME": str(home)})).resolve_asset_graph()
    return {name: graph.get(asset_key(name)).freshness_policy for name in EVERY}


def test_every_freshness_promise_has_an_asset_policy(tmp_path: Path) -> None:
    found = policies(tmp_path)
    promised = {name for name, contract in EVERY.items() if contract.freshness_hours is not None}
    assert {name for name, policy in found.items() if policy is not None} == promised
    # A day is published within six hours of its end, so the newest day is at most a day and six hours old.
    assert _window(found["gold.page_stats"]) == timedelta(hours=24 + 6)
    assert _window(found["bronze.visits"]) == timedelta(hours=1 + 1)


def test_nothing_is_expected_of_a_simulation_that_ended(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / ENDED).write_text("2026-01-08T00:00:00+00:00\n")
    assert {*policies(tmp_path).values()} == {None}


def _window(policy: dg.FreshnessPolicy | None) -> timedelta:
    assert isinstance(policy, TimeWindowFreshnessPolicy)
    window: timedelta = policy.fail_window.to_timedelta()
    return window
