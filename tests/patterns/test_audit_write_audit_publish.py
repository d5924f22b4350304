"""A failed audit refuses or warns and keeps the rows for inspection; a person can lift a false alarm."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from blogdata.contract.schema import Audit, Failed
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.table import refused
from blogdata.table.audit import warnings
from blogdata.table.faults import AuditFailed
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance
from toy import CONTRACT, HOURS, accounts, clicks, table, target

FEW = Audit(name="few", expression="count(1) <= 60", description="Not too many")


@pytest.mark.matrix(100)
def test_an_audit_that_warns_publishes_and_says_so(spark: Any, lake_root: Path) -> None:
    warning = replace(CONTRACT, audits=(replace(FEW, failed=Failed.WARNS),))
    rows = clicks(spark).where(f"hour = '{HOURS[0]}' OR click < 20")
    rows = rows.union(clicks(spark, 40, 100).where("click % 2 = 0"))
    commit = overwrite_partitions(rows, target(lake_root, contract=warning), HOURS, Provenance())
    assert {part: warnings(entry) for part, entry in commit.entries.items()} == {HOURS[0]: ["few"], HOURS[1]: []}
    assert len(table(spark, lake_root)) == 80
    assert not refused.kept(Lake(root=str(lake_root)))


@pytest.mark.matrix(100)
def test_refused_rows_are_kept_until_they_expire(spark: Any, lake_root: Path) -> None:
    lake, strict = Lake(root=str(lake_root)), replace(CONTRACT, audits=(FEW,))
    overwrite_partitions(clicks(spark), target(lake_root), HOURS, Provenance(accounts=accounts()))
    more = clicks(spark).union(clicks(spark, 40, 100).where("click % 2 = 0"))
    with pytest.raises(AuditFailed) as failed:
        overwrite_partitions(more, target(lake_root, contract=strict, run="2"), HOURS, Provenance())
    assert len(table(spark, lake_root)) == 100, "readers keep the previous version"
    (name,) = refused.kept(lake)
    assert f"SELECT * FROM {name}" in failed.value.next_step
    clicked = (row.click for row in more.collect() if row.hour == HOURS[0])
    assert sorted(row.click for row in lake.read(spark, name).collect()) == sorted(clicked)
    # Refused again, this time by Delta's own constraint: the newest rows replace the kept ones.
    negative = clicks(spark, 4).selectExpr("hour", "click - 4 AS click", "stands_for", "page")
    with pytest.raises(AuditFailed, match="positive"):
        overwrite_partitions(negative, target(lake_root, contract=strict, run="3"), HOURS, Provenance())
    assert [*refused.kept(lake)] == [name]
    assert {row.hour for row in lake.read(spark, name).collect()} == {*HOURS}
    assert lake.read(spark, name).count() == 4
    assert refused.expire(lake, now=datetime.now(timezone.utc)) == []
    assert refused.expire(lake, now=datetime.now(timezone.utc) + refused.KEPT + timedelta(minutes=1)) == [name]
    assert not refused.kept(lake)
