"""Partitions leave a table when their retention has ended: one commit that names them with their rows, and no JVM.

The commit removes whole files, so nothing is read or written but the log. The event log and the companions of the table
follow it by its metadata. If another commit changed these partitions first, it is computed again: the rows that it
counts are those that it removes. The files stay for readers of earlier versions until a vacuum.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from blogdata.contract.publication import EXPIRED
from blogdata.table import members
from blogdata.table.committer import ConcurrentWrite, Mark, OpenCommit
from blogdata.table.lake import Lake
from blogdata.table.store_faults import TRIES, contended


def leave(
    lake: Lake,
    dataset: str,
    column: str,
    partitions: Sequence[str],
    *,
    run: Mapping[str, Any],
    companions: Sequence[str] = (),
) -> Mapping[str, int]:
    """Take partitions out of a table and its companions, in one commit of the table; return the rows that left."""
    keys = sorted(partitions)
    for _ in range(TRIES):
        begun = OpenCommit(lake, dataset, Mark(writer=f"{EXPIRED}/{uuid.uuid4()}", batch=1))
        rows = rows_of(lake, dataset, column, keys, begun.table.version())
        beside = {name: _info(column, rows_of(lake, name, column, keys), run) for name in companions}
        held = {name: {"info": info, "added": [], "partitions": keys} for name, info in beside.items()}
        info = {**_info(column, rows, run), "companions": held}
        if members.is_pointer(begun.table):
            state = members.members_of(begun.table)
            left = state.superseded(keys, state.version + 1, datetime.now(timezone.utc))
            if members.commit(lake, dataset, state, left, info) is not None:
                return rows
        else:
            # Of another change to the same partitions, the rows are counted again.
            with suppress(ConcurrentWrite):
                begun.replace(keys, [], info)
                return rows
        time.sleep(random.uniform(0.005, 0.05))
    raise contended(dataset, "take partitions out")


def _info(column: str, rows: Mapping[str, int], run: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "commit_id": f"{EXPIRED}/{uuid.uuid4()}",
        EXPIRED: dict(rows),
        "partition_column": column,
        "inputs": {},
        "run": dict(run),
    }


def rows_of(
    lake: Lake, dataset: str, column: str, keys: Sequence[str], version: int | None = None
) -> Mapping[str, int]:
    """Count the rows of some partitions of a table, from its log; 0 for one that is not there."""
    counts = lake.row_counts(dataset, column, version, partitions=keys)
    return {key: counts.get(key, 0) for key in keys}
