"""Tables compacted between two runs: compaction is no publication, and makes nothing stale."""

from __future__ import annotations

import json

import pytest

from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from quality.contracts import CONTRACTS

HOUR, NEXT = "2026-01-05T10", "2026-01-05T11"


def deliver(deployment: Deployment, day: str, *users: str) -> None:
    folder = deployment.landing / "users" / f"date={day}"
    folder.mkdir(parents=True)
    (folder / "users.json").write_bytes(b"".join(json.dumps({"id": name}).encode() + b"\n" for name in users))
    (folder / "_SUCCESS").touch()


def compact(deployment: Deployment) -> set[str]:
    """Rewrite the files of every table; return the datasets with a new version."""
    before = deployment.versions()
    with deployment.session() as spark:
        for dataset in before:
            contract, table = CONTRACTS.get(dataset), deployment.lake.caught_up(dataset)
            assert table is not None
            there = {field.name for field in table.schema().fields} - {contract.partition_column if contract else None}
            # With ordering, even a few files are rewritten.
            column = next((name for name in (contract.statistics if contract else ()) if name in there), None)
            order = f" ZORDER BY (`{column}`)" if column else ""
            spark.sql(f"OPTIMIZE delta.`{deployment.lake.path(dataset)}`{order}").collect()
    return {dataset for dataset, version in deployment.versions().items() if version > before[dataset]}


@pytest.mark.campaign
def test_compaction_makes_no_reader_stale(deploy: Deploy) -> None:
    made = deploy("compacted")
    deliver(made, "2026-01-05", "user-/a", "user-/b")
    made.land(HOUR, [event("10:05", "/a"), event("10:20", "/b")])
    assert made.run().problems == []
    assert {"silver.users", "silver.visits", "silver.visits_enriched"} <= compact(made)
    assert made.run().runs == 0
    made.land(NEXT, [event("11:05", "/a"), event("10:55", "/b")])
    assert made.run().problems == []
    assert made.run().runs == 0
    assert made.problems() == []
