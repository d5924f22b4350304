"""Rows are identified as in the contract: by key, within a partition."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from blogdata.lake.lake import Lake
from chaos.recount import repeated
from quality.contracts import EVERY

SESSIONS = EVERY["silver.sessions"]


def rows(lake: Lake, *of: tuple[str, str]) -> None:
    hours, sessions = zip(*of, strict=True)
    write_deltalake(
        lake.path(SESSIONS.dataset),
        pa.table({"event_hour": hours, "session_id": sessions}),
        partition_by=["event_hour"],
    )


def test_a_session_in_two_hours_is_two_rows(lake_root: Path) -> None:
    lake = Lake(root=str(lake_root))
    rows(lake, ("2026-01-05T10", "a"), ("2026-01-05T11", "a"), ("2026-01-05T11", "b"))
    assert repeated(lake, SESSIONS) == 0


def test_a_session_that_is_twice_in_an_hour_is_counted(lake_root: Path) -> None:
    lake = Lake(root=str(lake_root))
    rows(lake, ("2026-01-05T10", "a"), ("2026-01-05T11", "a"), ("2026-01-05T11", "a"), ("2026-01-05T11", "a"))
    assert repeated(lake, SESSIONS) == 2


def test_every_key_is_counted_within_its_partition() -> None:
    for contract in EVERY.values():
        wanted = {*contract.key, contract.partition_column} - {None} if contract.key else set()
        assert (set(contract.identity), len(contract.identity)) == (wanted, len(wanted))
