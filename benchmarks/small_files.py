"""(p) A table of 1,000 small commits, and the same table after its compaction: files, bytes and seconds of a read."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import functions as F

from benchmarks.deployment import Bench
from benchmarks.measure import Case, Peer, Result, Size, interleaved, ratio, say
from benchmarks.same import require_equal
from blogdata.lake.data_files import ZSTD
from blogdata.lake.lake import Lake
from blogdata.patterns.ingestion import compactor
from blogdata.patterns.ingestion.landed_content import landed_lines
from blogdata.patterns.ingestion.readiness_marker import scan
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain
from blogdata.publish.run import RunContext
from blogdata.publish.schema import Column, Partitioning
from blogdata.publish.target import Target

COMMITS = 1000
STANDARD_LINES = 50_000
HOUR = "hour"
SCHEMA = pa.schema([(HOUR, pa.string()), ("source_file", pa.string()), ("raw", pa.binary())])
CONTRACT = Contract(
    dataset="bench.streamed",
    description="Lines of a landing zone, as a stream appends them",
    owner="team:platform",
    columns=(
        Column(name=HOUR, type="STRING", description="Hour of arrival"),
        Column(name="source_file", type="STRING", description="Landed file"),
        Column(name="raw", type="BINARY", description="The line"),
    ),
    partitioning=Partitioning(column=HOUR, grain=Grain.HOUR),
)
AS_STREAMED, COMPACTED = "as streamed", "compacted"


@dataclass(frozen=True, kw_only=True)
class Found:
    """The files of a table at its newest version.

    Args:
        files: Their number.
        bytes: Their size.
    """

    files: int
    bytes: int

    @classmethod
    def of(cls, table: DeltaTable) -> Found:
        """Read them from the table's log."""
        found = compactor.files(table)
        return cls(files=len(found), bytes=sum(file.bytes for file in found))


def measure(bench: Bench, size: Size) -> Result:
    """Measure with this many landed lines."""
    lines = size.visits or STANDARD_LINES
    landing, folder = bench.simulated(lines, days=1), bench.folder("small")
    say(f"{COMMITS:,} commits of {lines:,} lines, {size.rounds} rounds")
    lakes = {name: Lake(root=str(folder / name.split()[-1])) for name in (AS_STREAMED, COMPACTED)}
    stream(landing, lakes[AS_STREAMED], lines // COMMITS)
    shutil.copytree(lakes[AS_STREAMED].root, lakes[COMPACTED].root)
    seconds = _compact(bench, lakes[COMPACTED])
    tables = {name: DeltaTable(lake.path(CONTRACT.dataset)) for name, lake in lakes.items()}
    frames = [lake.read(bench.spark, CONTRACT.dataset) for lake in lakes.values()]
    require_equal(*frames, where=CONTRACT.dataset, exactly=True)
    found = {name: vars(Found.of(table)) for name, table in tables.items()}
    hour = max(file.partition for file in compactor.files(tables[COMPACTED]))
    ways: dict[str, Callable[[Lake], object]] = {
        "all rows, by Spark": lambda lake: _read(bench, lake, None),
        "the rows of an hour, by Spark": lambda lake: _read(bench, lake, hour),
        "all rows, without a JVM": lambda lake: lake.columns(CONTRACT.dataset, ["raw"]).num_rows,
    }
    cases = []
    for way, read in ways.items():
        peers = [Peer(name=name, run=lambda _, read=read, lake=lake: read(lake)) for name, lake in lakes.items()]  # type: ignore[misc]
        taken = interleaved(peers, size.rounds, warm_ups=1)
        cases.append(Case(name=way, seconds=taken, ratios=[ratio(taken, AS_STREAMED, COMPACTED)]))
    facts = {"the table": found, "seconds of the compaction": round(seconds, 2)}
    cases[0] = Case(name=cases[0].name, seconds=cases[0].seconds, ratios=cases[0].ratios, facts=facts)
    return Result(letter="p", title="A thousand small commits", cases=cases)


def stream(landing: Path, lake: Lake, lines: int) -> None:
    """Append landed lines in the order of their hours, a commit for every few of them, until there are enough commits.

    Args:
        landing: The landing zone.
        lake: Where the table is made.
        lines: Lines of a commit.
    """
    for batch in islice(_batches(landing, lines), COMMITS):
        rows = pa.Table.from_pydict(dict(zip(SCHEMA.names, zip(*batch, strict=True), strict=True)), schema=SCHEMA)
        write_deltalake(lake.path(CONTRACT.dataset), rows, mode="append", partition_by=[HOUR], writer_properties=ZSTD)


def _batches(landing: Path, lines: int) -> Iterator[list[tuple[str, str, bytes]]]:
    """Cut the lines of all hours into batches; one that two hours share has rows of both."""
    every = (
        (partition.key, line.file, line.raw)
        for partition in scan(landing / "visits", Grain.HOUR)
        for line in landed_lines([partition.folder / file.name for file in partition.files], landing)
    )
    while batch := list(islice(every, lines)):
        yield batch


def _compact(bench: Bench, lake: Lake) -> float:
    table = lake.table(CONTRACT.dataset)
    assert table is not None
    later = datetime.now(timezone.utc) + timedelta(days=1)
    due = compactor.due(compactor.files(table), later, is_final=lambda _: True)
    aim = Target(lake=lake, contract=CONTRACT, run=RunContext(run_id="compact", job="benchmark", code_version="1"))
    began = time.perf_counter()
    compactor.compact(bench.spark, aim, [one.partition for one in due])
    return time.perf_counter() - began


def _read(bench: Bench, lake: Lake, hour: str | None) -> Any:
    rows = lake.read(bench.spark, CONTRACT.dataset)
    wanted = rows if hour is None else rows.where(F.col(HOUR) == hour)
    return wanted.agg(F.count("*"), F.sum(F.length("raw"))).collect()
