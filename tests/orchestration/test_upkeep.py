"""Every table of a deployment is looked at, those of streams and what appears with another dataset included."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration.maintenance import OWN, Due, Inspection, look
from blogdata.orchestration.upkeep import actions
from blogdata.patterns.ingestion.compactor import AT_REST, MANY
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import key_of
from quality.contracts import CONTRACTS, EVERY
from tidied import whole

LONG_AGO, NEWEST = datetime(2026, 1, 5, tzinfo=timezone.utc), datetime(2026, 7, 6, tzinfo=timezone.utc)


def scatter(lake: Lake, contract: Contract) -> None:
    """Write many small files into a partition that is final, or into a table without partitions."""
    column, grain = contract.partition_column, contract.grain
    for at in [NEWEST, *[LONG_AGO] * MANY]:
        key = pa.array([key_of(at, grain) if grain else ""])
        rows = pa.table({column or "key": key, "row": [1]})
        write_deltalake(lake.path(contract.dataset), rows, mode="append", partition_by=[column] if column else None)


def test_small_files_of_every_dataset_are_found(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    for contract in EVERY.values():
        scatter(lake, contract)
    now = datetime.now(timezone.utc) + AT_REST
    seen = Inspection(lake=lake, events=EventLog(lake), now=now)
    found: list[Due] = whole(look(seen, actions(EVERY.values()), (*EVERY.values(), *OWN)))
    assert {due.action for due in found} == {"compact"}
    assert [due.dataset for due in found] == list(EVERY)
    assert EVERY.keys() > CONTRACTS.keys(), "those of streams, too"
    assert any(contract.appears_with for contract in EVERY.values())
