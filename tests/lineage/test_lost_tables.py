"""Tables that the lake lost are stale, and computed again: gone or older than what was published of them.

Versions go on after those that were recorded, so that no reader takes a new version for one that it has read.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lineage.command_line import Said
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.origins import three_hours

GONE = (
    "bronze.visits",
    "bronze.devices",
    "silver.visit_conflicts",
    "silver.sessions",
    "silver.users_current",
    "gold.visits_weekly",
    "silver.devices",
)
"""A source, copies behind a pointer, a companion, a main table, one executed in order, weeks behind one, one merged."""
OLDER = "silver.users"


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    """Three published hours."""
    return deploy.published("lost-tables", three_hours)


def test_tables_that_are_gone_or_older_are_told_and_computed_again(said: Said, deployment: Deployment) -> None:
    before, versions = deployment.contents(), deployment.versions()
    shutil.rmtree(deployment.lake.path("bronze.visits"))
    assert deployment.planner.stale(deployment.planner.graph.task_of("bronze.visits")).keys() == {
        "2026-01-05T00",
        "2026-01-05T01",
        "2026-01-05T02",
    }
    code, out, _ = said("ledger", "bronze.visits")
    assert (code, f"version {versions['bronze.visits']} was published" in out) == (1, True)
    planned = json.loads(said("plan", "--json")[1])["runs"]
    assert planned[0]["datasets"][0] == "bronze.visits"
    code, out, _ = said("run", "--for", "bronze.visits")
    assert (code, "done in" in out) == (0, True)
    assert deployment.contents_of("bronze.visits") == before["bronze.visits"]
    assert deployment.versions()["bronze.visits"] > versions["bronze.visits"]
    for name in GONE:
        shutil.rmtree(deployment.lake.path(name))
    newest = max(Path(deployment.lake.path(OLDER), "_delta_log").glob("*.json"))
    newest.unlink()
    newest.with_suffix(".crc").unlink()
    assert said("ledger")[0] == 1
    assert deployment.run().problems == []
    assert deployment.contents() == before
    assert deployment.problems() == []
    after = deployment.versions()
    assert [name for name in GONE if after[name] <= versions[name]] == []
    assert deployment.outstanding().runs == []
