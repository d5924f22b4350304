"""A table without a new column of its contract gets the column with its next publication.

Pattern: Aligned Fan-In.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blogdata.evidence.events import EventLog
from blogdata.lake.commit import Account
from blogdata.lake.lake import Lake
from blogdata.orchestration.completeness import partial
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.publish.contract import Contract
from blogdata.publish.target import Provenance
from blogdata.publish.write_faults import AuditFailed
from quality.contracts import CONTRACTS
from toy import target

MONDAY, TUESDAY = "2026-01-05", "2026-01-06"
NOW = CONTRACTS["gold.page_stats"]
BEFORE = replace(
    NOW,
    columns=tuple(column for column in NOW.columns if column.name != "hours_present"),
    rules=tuple(rule for rule in NOW.rules if "hours_present" not in rule.expression),
    audits=tuple(audit for audit in NOW.audits if "hours_present" not in audit.expression),
    measures={},
    parts=None,
)


def publish(spark: Any, lake: Lake, contract: Contract, day: str, hours: int | None) -> None:
    columns = "event_date STRING, page STRING, events BIGINT, visits BIGINT, users BIGINT, share DOUBLE"
    rows = [(day, page, 1, 1, 1, 0.5, hours) for page in ("/a", "/b")]
    frame = spark.createDataFrame(rows, f"{columns}, hours_present INT")
    aim = target(Path(lake.root), f"{day} {hours}", contract=contract)
    overwrite_partitions(frame, aim, [day], Provenance(accounts={day: Account(rows_in=2)}))


def hours(lake: Lake) -> dict[str, set[int | None]]:
    """Map each day to the hours in its rows, as the sink reads them."""
    version = lake.version(NOW.dataset)
    assert version is not None
    return {
        day: {
            value
            for batch in LakeResource(root=lake.root, landing="").batches(NOW.dataset, version, "event_date", day)
            for value in batch.column("hours_present").to_pylist()
        }
        for day in (MONDAY, TUESDAY)
    }


@pytest.mark.campaign
def test_older_days_stay_when_a_column_is_added(spark: Any, lake_root: Path) -> None:
    lake = Lake(root=str(lake_root))
    events = EventLog(lake)
    publish(spark, lake, BEFORE, MONDAY, None)
    publish(spark, lake, NOW, TUESDAY, 23)
    assert hours(lake) == {MONDAY: {None}, TUESDAY: {23}}
    found = partial(events, NOW, events.publications(NOW.dataset))
    assert (found.ended, found.uncounted) == ({TUESDAY: "23 of 24"}, 1)

    table = lake.caught_up(NOW.dataset)
    assert table is not None
    assert "delta.constraints.hours_of_a_day" in table.metadata().configuration
    with pytest.raises(AuditFailed, match="hours_of_a_day"):
        publish(spark, lake, NOW, TUESDAY, 25)

    publish(spark, lake, NOW, MONDAY, 24)
    assert hours(lake) == {MONDAY: {24}, TUESDAY: {23}}
    assert partial(events, NOW, events.publications(NOW.dataset)).uncounted == 0
