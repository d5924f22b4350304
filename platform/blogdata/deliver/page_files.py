"""The page statistics as files for the editors: CSV files, which Parquet files replace.

Their content system has read a CSV file of each day since before there was a lake: German headings, a semicolon between
the columns, percents with two decimals. It moves to typed files. In the shadow phase both are written from one read and
compared; from the cut-over on, only the new ones. A day's receipt says from which version its files were written.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq

from blogdata.contract.publication import PARTITION_ROWS, kept
from blogdata.files import write_whole
from blogdata.ledger.events import EventLog
from blogdata.ledger.faults import input_not_published
from blogdata.patterns.data_flow.exclusive_choice import Choice, taken
from blogdata.patterns.data_flow.parallel_split import Writer, compare, split
from blogdata.runs.computation import access_of, partitions_of
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.names import asset_key
from blogdata.runs.retries import reported
from blogdata.table.lake import Lake
from quality.contracts import CONTRACTS

SOURCE = CONTRACTS["gold.page_stats"]
KEY = asset_key("serving.page_stats_files")
_COUNTS = ("events", "visits", "users")
_HEADINGS = ("Seite", "Aufrufe", "Besuche", "Besucher", "Anteil in Prozent")


def _cells(row: Mapping[str, Any]) -> tuple[str | int, ...]:
    return row["page"], *(row[name] for name in _COUNTS), f"{row['share'] * 100:.2f}"


def to_csv(rows: pa.Table) -> bytes:
    """Write the rows as the content system expects them: UTF-8, quoted where needed, the most read page first."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=";", lineterminator="\r\n")
    writer.writerow(_HEADINGS)
    writer.writerows(map(_cells, sorted(rows.to_pylist(), key=lambda row: (-row["events"], row["page"]))))
    return text.getvalue().encode()


def from_csv(content: bytes) -> Iterator[tuple[str | int, ...]]:
    """Parse a CSV file as the content system does."""
    for row in csv.DictReader(io.StringIO(content.decode(), newline=""), delimiter=";"):
        page, *counts, percent = (row[name] for name in _HEADINGS)
        yield page, *map(int, counts), percent


def to_parquet(rows: pa.Table) -> bytes:
    pq.write_table(rows, sink := pa.BufferOutputStream(), compression="zstd")
    return bytes(sink.getvalue())


def from_parquet(content: bytes) -> Iterator[tuple[str | int, ...]]:
    """Read from a Parquet file what the CSV file tells, with percents as that one has them."""
    return map(_cells, pq.read_table(pa.BufferReader(content)).to_pylist())


CSV = Writer(name="csv", file="page_stats.csv", encode=to_csv, decode=from_csv)
PARQUET = Writer(name="parquet", file="page_stats.parquet", encode=to_parquet, decode=from_parquet)
CHOICE: Choice[Writer] = {
    date.min: (CSV,),
    date(2026, 1, 1): (CSV, PARQUET),
    date(2027, 1, 1): (PARQUET,),
}


def writers_of(day: str) -> tuple[Writer, ...]:
    return taken(CHOICE, date.fromisoformat(day))


def folder_of(access: LakeResource) -> Path:
    return access.landing_path.parent / "exports" / "page_stats"


def due(lake: Lake, events: EventLog, folder: Path) -> dict[str, str]:
    """Map the days whose files lack what is published to its version, the newest day first; no row is read."""
    published = sorted(_published(lake, events).items(), reverse=True)
    return {day: version for day, version in published if not _is_written(folder, day, version)}


def _is_written(folder: Path, day: str, version: str) -> bool:
    file, writers = _receipt(folder, day), writers_of(day)
    if not file.exists() or not all(writer.path(folder, day).is_file() for writer in writers):
        return False
    receipt = json.loads(file.read_bytes())
    return (receipt["version"], receipt["writers"]) == (version, [writer.name for writer in writers])


def _receipt(folder: Path, day: str) -> Path:
    return folder / "receipts" / f"date={day}.json"


def _published(lake: Lake, events: EventLog) -> Mapping[str, str]:
    table = lake.caught_up(SOURCE.dataset)
    if table is None:
        return {}
    # The versions of a table that was built anew count anew.
    identity = str(table.metadata().id)[:8]
    return {key: f"{identity}-{entry.version}" for key, entry in kept(events.publications(SOURCE.dataset)).items()}


def page_files(partitions: dg.PartitionsDefinition[str]) -> dg.AssetsDefinition:
    """Build the asset; it requires the resource `lake`. In a backfill each day is a run of its own."""

    @dg.asset(
        key=KEY,
        description=f"{SOURCE.dataset} as files: one of each writer that the day takes, compared if there are two",
        group_name="serving",
        owners=["team:analytics"],
        kinds={"csv", "parquet"},
        tags={"pattern/parallel-split": "", "pattern/exclusive-choice": "", "pattern/concurrent-runner": ""},
        deps=[asset_key(SOURCE.dataset)],
        partitions_def=partitions,
        required_resource_keys={"lake"},
        check_specs=[
            dg.AssetCheckSpec("agrees", asset=KEY, description="No compared day has rows that differ (warning)")
        ],
    )
    def page_stats_files(context: dg.AssetExecutionContext) -> Iterator[Any]:
        with reported(context):
            access = access_of(context)
            (day,) = partitions_of(context, "serving.page_stats_files")
            yield _write(access, folder_of(access), day)

    return page_stats_files


def _write(access: LakeResource, folder: Path, day: str) -> dg.MaterializeResult[None]:
    writers, (version, rows) = writers_of(day), _read(access, day)
    split(writers, rows, folder, day)
    receipt = {"version": version, "writers": [writer.name for writer in writers], **compare(writers, folder, day)}
    write_whole(_receipt(folder, day), json.dumps(receipt).encode())
    return dg.MaterializeResult(metadata={PARTITION_ROWS: rows.num_rows, **receipt}, check_results=[_agrees(folder)])


def _read(access: LakeResource, day: str) -> tuple[str, pa.Table]:
    """Read a day whole, with its version; rows newer than the version make it due again, never unnoticed."""
    published, table = _published(access.lake, access.events), access.lake.caught_up(SOURCE.dataset)
    if day not in published:
        raise input_not_published("serving.page_stats_files", [day], [SOURCE.dataset])
    assert table is not None
    assert SOURCE.partition_column is not None
    batches = list(access.batches(SOURCE.dataset, table.version(), SOURCE.partition_column, day))
    # A day without a page view has no batch, either.
    return published[day], pa.Table.from_batches(batches, None if batches else pa.schema(table.schema().to_arrow()))


def _agrees(folder: Path) -> dg.AssetCheckResult:
    compared = [file for file in _receipt(folder, "*").parent.glob("*.json") if b'"equal"' in file.read_bytes()]
    receipts = {file.stem.removeprefix("date="): json.loads(file.read_bytes()) for file in sorted(compared)}
    differing = [day for day, receipt in receipts.items() if receipt["only_first"] or receipt["only_second"]]
    return dg.AssetCheckResult(
        check_name="agrees",
        asset_key=KEY,
        passed=not differing,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{len(differing)} of {len(receipts)} days differ" if differing else None,
        metadata={"compared": len(receipts), "differing": differing},
    )
