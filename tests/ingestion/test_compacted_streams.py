"""Streams of many small commits, by a simulated clock: the files stay few, and a look at them costs the same.

Pattern: Compactor (:mod:`blogdata.patterns.ingestion.compactor`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction

from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration import maintenance
from blogdata.orchestration.maintenance import Due, Upkeep
from blogdata.orchestration.upkeep import actions
from blogdata.patterns.ingestion import compactor
from blogdata.publish.partitions import Grain, key_of
from tidied import whole
from toy import CONTRACT, target

LIVE = replace(CONTRACT, reasons={}, stands_for="count(1)", audits=())
START = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
"""In the future, so that no file is younger than the clock."""
CHECKPOINT_EVERY = 100
"""Of commits that are made without a JVM."""
LATE = 8
"""One in so many batches adds to the hour before."""


class Cost(NamedTuple):
    """What a look at a table reads: files of its log, and the data files that these list."""

    log: int
    files: int


class Stream:
    """A table to which a stream appends a row a batch, at the times of a simulated clock."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.lake, self.batches = spark, Lake(root=str(root)), 0
        self.folder = root / "silver" / "clicks"
        self.log = self.folder / "_delta_log"
        nothing = pa.schema(
            [("hour", pa.string()), ("click", pa.int64()), ("stands_for", pa.int64()), ("page", pa.string())]
        )
        self.table = DeltaTable.create(self.folder, Schema.from_arrow(nothing), partition_by=["hour"])

    def append(self, hour: str, now: datetime) -> None:
        """Append a batch with a row of an hour; file and commit have the time of the clock."""
        file = self.folder / f"hour={hour}" / f"part-{self.batches:05}.parquet"
        file.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"click": [self.batches], "stands_for": [1], "page": ["/"]}), file)
        added = AddAction(
            path=str(file.relative_to(self.folder)),
            size=file.stat().st_size,
            partition_values={"hour": hour},
            modification_time=int(now.timestamp() * 1000),
            data_change=True,
            stats=json.dumps({"numRecords": 1}),
        )
        self.table.update_incremental()
        self.table.create_write_transaction([added], "append", self.table.schema(), partition_by=["hour"])
        self.batches += 1
        for written in (file, self.log / f"{self.table.version():020}.json"):
            os.utime(written, (now.timestamp(), now.timestamp()))

    def an_hour(self, number: int, batches: int) -> datetime:
        """Append the batches of an hour, some of them to the hour before; return its end."""
        begin = START + timedelta(hours=number)
        for batch in range(batches):
            late = number > 0 and batch % LATE == 0
            at = begin + batch * timedelta(hours=1) / batches
            self.append(key_of(begin - timedelta(hours=1) if late else begin, Grain.HOUR), at)
        return begin + timedelta(hours=1)

    def upkeep(self, now: datetime) -> Upkeep:
        @contextmanager
        def session() -> Iterator[Any]:
            yield self.spark

        run = target(Path(self.lake.root), "maintain", contract=LIVE).run
        return Upkeep(lake=self.lake, events=EventLog(self.lake), run=run, spark=session, now=now)

    def maintain(self, now: datetime) -> list[Due]:
        done = whole(maintenance.maintain(self.upkeep(now), actions([LIVE]), [LIVE]))
        assert [one.left for one in done if one.left] == []
        return [one.due for one in done]

    def cost(self) -> Cost:
        table = DeltaTable(self.folder)
        begun = max((int(file.name[:20]) for file in self.log.glob("*.checkpoint*.parquet")), default=-1)
        return Cost(log=table.version() - begun + (begun >= 0), files=len(compactor.files(table)))

    def clicks(self) -> list[int]:
        return sorted(row.click for row in self.lake.read(self.spark, LIVE.dataset).collect())


def test_hundreds_of_small_commits_become_a_file_an_hour(spark: Any, tmp_path: Path) -> None:
    stream, batches = Stream(spark, tmp_path / "lake"), 200
    for batch in range(batches):
        stream.append(f"2026-01-05T0{batch % 2}", START)
    before, version = stream.cost(), DeltaTable(stream.folder).version()
    assert (version, before.files) == (batches, batches)
    assert before.log <= CHECKPOINT_EVERY + 1
    bytes_before = sum(file.bytes for file in compactor.files(DeltaTable(stream.folder)))
    (done,) = stream.maintain(START + timedelta(hours=2))
    assert (done.action, done.files, done.bytes) == ("compact", batches, bytes_before)
    after = compactor.files(DeltaTable(stream.folder))
    assert (len(after), DeltaTable(stream.folder).version()) == (2, version + 1)
    assert sum(file.bytes for file in after) < bytes_before / 20
    assert stream.clicks() == list(range(batches))
    assert stream.maintain(START + timedelta(hours=2)) == []
