"""Tables and files without Spark, for tests of commits."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    files = files_below(store.files(store.path(DATASET)), relative, partition=("day", day), indexed=["click"])
    if partitioned and day is not None:
        return files
    return [DataFile(path=file.path, size=file.size, rows=file.rows, partition_values={}) for file in files]


def opened(store: Store, batch: str, number: int = 0, **how: Any) -> OpenCommit:
    return OpenCommit(store, DATASET, Mark(writer=batch, batch=number), **how)


def replace(store: Store, day: str, clicks: Sequence[int], batch: str) -> int:
    return opened(store, batch).replace([day], written(store, day, clicks), {})


def rows(store: Store, version: int | None = None) -> Rows:
    """Read all rows, sorted, by delta-rs, without those that are marked as removed."""
    table = DeltaTable(store.path(DATASET), version=version)
    return sorted(((row["day"], row["click"]) for row in arrow.select(table, "SELECT day, click FROM t")), key=str)


def at_once(work: Callable[..., Any], root: Path, writers: int) -> list[Any]:
    """Run a function of a lake's root and a number in threads, each with handles of its own; return its results."""
    with ThreadPoolExecutor(writers) as threads:
        return list(threads.map(lambda number: work(str(root), number), range(writers)))


def with_second_row_removed(store: Store) -> None:
    """Have the newest commit's file mark its second row as removed, by a deletion vector within the log."""
    log = max((Path(store.path(DATASET)) / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    # Delta's protocol, "Deletion Vector Format": a 64-bit array of one Roaring bitmap with one array container, of 1.
    vector = {"storageType": "i", "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg0rr91"}
    for action in actions:
        if "add" in action:
            action["add"]["deletionVector"] = {**vector, "sizeInBytes": 36, "cardinality": 1}
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    actions.append({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})
    # delta-rs would take the protocol from it.
    log.with_suffix(".crc").unlink()
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
