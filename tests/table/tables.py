"""Tables and files without Spark, for tests of commits."""

from __future__ import annotations

import multiprocessing
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from blogdata.table import arrow
from blogdata.table.actions import DataFile, files_below
from blogdata.table.committer import Mark, OpenCommit
from blogdata.table.store import Store

DATASET = "silver.clicks"
SCHEMA = pa.schema([("day", pa.string()), ("click", pa.int64())])
Rows = list[tuple[str | None, int]]


def made(root: Path, *, column: str | None = "day", properties: dict[str, str | None] | None = None) -> Store:
    store = Store(root=str(root))
    DeltaTable.create(
        store.path(DATASET), schema=SCHEMA, partition_by=[column] if column else None, configuration=properties
    )
    return store


def written(store: Store, day: str | None, clicks: Sequence[int], *, partitioned: bool = True) -> list[DataFile]:
    """Write a file as Spark would, below the table and not yet part of it."""
    folder = Path(store.path(DATASET)) / "data" / uuid.uuid4().hex
    folder.mkdir(parents=True)
    columns: dict[str, Any] = {"click": pa.array(clicks, pa.int64())}
    if not partitioned:
        columns = {"day": pa.array([day] * len(clicks), pa.string()), **columns}
    pq.write_table(pa.table(columns), folder / "part-0.parquet")
    relative = str(folder.relative_to(store.path(DATASET)))
    found = files_below(store.files(store.path(DATASET)), relative, partition=("day", day), indexed=["click"])
    if partitioned and day is not None:
        return found
    return [DataFile(path=file.path, size=file.size, rows=file.rows, partition_values={}) for file in found]


def opened(store: Store, batch: str, number: int = 0, **how: Any) -> OpenCommit:
    return OpenCommit(store, DATASET, Mark(writer=batch, batch=number), **how)


def replace(store: Store, day: str, clicks: Sequence[int], batch: str) -> int:
    return opened(store, batch).replace([day], written(store, day, clicks), {})


def rows(store: Store, version: int | None = None) -> Rows:
    """Read all rows, sorted, by delta-rs, without those that are marked as removed."""
    table = DeltaTable(store.path(DATASET), version=version)
    found = arrow.select(table, "SELECT day, click FROM t")
    return sorted(((row["day"], row["click"]) for row in found), key=str)


def at_once(work: Callable[..., Any], root: Path, processes: int) -> list[Any]:
    """Run a function of a lake's root and a number in processes of their own; return what they return."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return pool.starmap(work, [(str(root), number) for number in range(processes)])
