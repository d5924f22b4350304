from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from blogdata.contract.schema import Audit, Failed
from blogdata.ledger.events import EventLog
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.table import refused
from blogdata.table.audit import warnings
from blogdata.table.faults import AuditFailed
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance
from toy import CONTRACT, HOURS, clicks, copies_of, resting, target

FEW = Audit(name="few", expression="count(1) <= 60", description="Not too many")
WARNING = replace(CONTRACT, audits=(replace(FEW, failed=Failed.WARNS),))
STRICT = replace(CONTRACT, audits=(FEW,))


def seventy(spark: Any) -> Any:
    return clicks(spark, 140).where(f"hour = '{HOURS[0]}' OR click < 20")


warned = copies_of(
    lambda spark, root: overwrite_partitions(seventy(spark), target(root, contract=WARNING), HOURS, Provenance())
)


def test_an_audit_that_warns_publishes_and_says_so(warned: Path) -> None:
    lake = Lake(root=str(warned))
    published = EventLog(lake).publications(CONTRACT.dataset)
    assert {part: warnings(entry) for part, entry in published.items()} == {HOURS[0]: ["few"], HOURS[1]: []}
    assert (len(resting(warned)), refused.kept(lake)) == (80, {})


def test_refused_rows_are_kept_until_they_expire(spark: Any, warned: Path) -> None:
    lake = Lake(root=str(warned))
    with pytest.raises(AuditFailed) as failed:
        overwrite_partitions(seventy(spark), target(warned, contract=STRICT, run="2"), HOURS, Provenance())
    assert len(resting(warned)) == 80, "readers keep the previous version"
    (name,) = refused.kept(lake)
    assert f"SELECT * FROM {name}" in failed.value.next_step
    assert [click for _, click, *_ in resting(warned, name)] == [*range(0, 140, 2)]
    # Refused again, this time by Delta's own constraint: the newest rows replace the kept ones.
    negative = clicks(spark, 4).selectExpr("hour", "click - 4 AS click", "stands_for", "page")
    with pytest.raises(AuditFailed, match="positive"):
        overwrite_partitions(negative, target(warned, contract=STRICT, run="3"), HOURS, Provenance())
    assert [*refused.kept(lake)] == [name]
    assert [row[0] for row in resting(warned, name)] == [HOURS[0]] * 2 + [HOURS[1]] * 2
    now = datetime.now(timezone.utc)
    assert refused.expire(lake, now=now) == []
    assert refused.expire(lake, now=now + refused.KEPT + timedelta(minutes=1)) == [name]
    assert not refused.kept(lake)


def test_a_refused_batch_that_cannot_be_kept_hides_no_audit(spark: Any, warned: Path) -> None:
    (warned / refused.LAYER).touch()
    with pytest.raises(AuditFailed, match="few") as failed:
        overwrite_partitions(seventy(spark), target(warned, contract=STRICT, run="2"), HOURS, Provenance())
    assert "the rows could not be kept" in failed.value.next_step
