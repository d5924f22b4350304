"""Rows of newest versions that nothing computes again: their partitions are published anew without those of persons.

They are rows of streams, of hours and deliveries whose landed files are gone, and places of addresses. A row with a
landed line is a person's if the line is, any other one by its fields. The rows are left out by a join with a view, so
no value stands in a commit. The account of the partition says how many were `erased`: the ledger adds up, and what was
computed from the partition is stale.

The state of a stream is in files that only Spark can change, so all checkpoints of the stream go. A new checkpoint is a
new writer, and passes over landed files whose rows are published
(:mod:`blogdata.patterns.error_management.checkpointer`). What is lost is what its state alone had: sessions that were
still open.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import and_, attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from blogdata.contract.contract import Contract
from blogdata.contract.migrations import carried
from blogdata.contract.publication import WHOLE_TABLE, Account, Entry, kept
from blogdata.landing.landed_persons import FIELDS, Identifiers, Reader, spelled
from blogdata.landing.suppression_list import Suppressed
from blogdata.ledger.events import EventLog, appended
from blogdata.operate.config import LogSettings
from blogdata.planning.reach import Landed, landed_input
from blogdata.planning.snapshot import Snapshot, StreamedInput
from blogdata.privacy import clearing
from blogdata.runs import turns
from blogdata.runs.landed_inputs import ERASED, published_lines
from blogdata.runs.upkeep import BUSY
from blogdata.table import arrow, tables
from blogdata.table.lake import Lake, marks_rows
from blogdata.table.publish import publish
from blogdata.table.store import file_of
from blogdata.table.target import Overwrite, Provenance, RunContext, Target
from quality.contracts import CONTRACTS, LANDED, STREAMED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLACE_OF_A_LINE = ("source_file", "source_offset")
KEY = "partition"
"""Column of a person's rows: the partition that they are in."""
PLACES = CONTRACTS["silver.places"]
NEVER_COMPUTED_AGAIN = (*STREAMED.values(), PLACES)
"""Datasets whose rows stay as they were published: the persons' rows are taken out of them."""
_OTHER = "_of_theirs_"
"""Prefix of the view's columns, which are named like those of the table."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    events: EventLog
    landing: Path
    persons: Identifiers
    logs: LogSettings

    @property
    def lake(self) -> Lake:
        return self.events.lake

    def of(self, contract: Contract, partitions: Collection[str] | None = None) -> pa.Table | None:
        """Find the rows of the persons in the newest version: their partitions, and the columns that identify them.

        None if there is none.
        """
        entries = kept(self.events.publications(contract.dataset, partitions))
        if not entries:
            return None
        rows = self._of_lines(contract, entries) if has_lines(contract) else self._by_fields(contract, entries)
        return rows if rows.num_rows else None

    def _of_lines(self, contract: Contract, keys: Iterable[str]) -> pa.Table:
        """Find lines as they are found where they land."""
        suppressed = Suppressed.of(self.persons, secrets.token_bytes())
        rows = []
        for key in sorted(keys):
            published = sorted(published_lines(self.lake, contract, key))
            for file, lines in groupby(published, key=attrgetter("file")):
                reader = Reader(self.landing / file, self.landing, self.logs)
                gone = suppressed.gone(reader, ((line.offset, line.raw) for line in lines))
                rows += [(key, file, offset) for offset in sorted(gone)]
        types = (pa.string(), pa.string(), pa.int64())
        cells: Sequence[Sequence[object]] = [*zip(*rows, strict=True)] or [(), (), ()]
        return pa.table(dict(zip((KEY, *PLACE_OF_A_LINE), map(pa.array, cells, types), strict=True)))

    def _by_fields(self, contract: Contract, keys: Iterable[str]) -> pa.Table:
        fields = [column.name for column in contract.columns if column.name in FIELDS]
        column = contract.partition_column
        if column is None:
            table = self.marked_and_others(contract, fields)
        else:
            table = self.lake.columns(contract.dataset, [column, *fields], only={column: sorted(keys)})
        cells = {name: table[name].cast(pa.string()) for name in table.column_names}
        theirs = [pc.is_in(cells[name], self._values(FIELDS[name], cells[name])) for name in fields]
        if not theirs:
            return table.slice(0, 0)
        keys_of = cells[column] if column else pa.array([WHOLE_TABLE] * table.num_rows, pa.string())
        return pa.table({KEY: keys_of, **{name: cells[name] for name in fields}}).filter(reduce(pc.or_, theirs))

    def _values(self, kind: str, cells: pa.ChunkedArray) -> pa.Array:
        known = spelled(kind, self.persons.by_kind()[kind])
        if kind == "addresses" and known:
            known = frozenset(cell for cell in pc.unique(cells).to_pylist() if cell and known & spelled(kind, [cell]))
        return pa.array(sorted(known), pa.string())

    def marked_and_others(self, contract: Contract, fields: Sequence[str]) -> pa.Table:
        """Read all rows of the newest version, those that are only marked as removed, too."""
        table, folder = self.lake.caught_up(contract.dataset), self.lake.folder(contract.dataset)
        if table is None or folder is None or not marks_rows(table):
            return self.lake.columns(contract.dataset, fields)
        paths = arrow.rows_of(table.get_add_actions(flatten=True), ["path"])
        files = [file_of(folder, row["path"]) for row in paths]
        return ds.dataset(files, format="parquet").to_table(columns=list(fields))


class UnusedAddresses(Rows):
    """Addresses that no visit has any more, instead of the persons': one that others have, too, stays."""

    def of(self, contract: Contract, partitions: Collection[str] | None = None) -> pa.Table | None:
        known = self.marked_and_others(contract, ["ip"])["ip"].cast(pa.string())
        used = self.lake.columns("silver.visits", ["ip"])["ip"].cast(pa.string()).combine_chunks()
        if not len(unused := known.filter(pc.invert(pc.is_in(known, used)))):
            return None
        return pa.table({KEY: pa.array([WHOLE_TABLE] * len(unused), pa.string()), "ip": unused})


def has_lines(contract: Contract) -> bool:
    return {column.name for column in contract.columns}.issuperset({*PLACE_OF_A_LINE, "raw"})


def _provenance(entries: Mapping[str, Entry], contract: Contract, erased: Mapping[str, int]) -> Provenance:
    accounts, inputs = {}, dict[str, int]()
    for key, entry in entries.items():
        # The audit measures the other ones in the rows that stay.
        reasons = {reason: rows for reason, rows in entry.reasons.items() if reason not in contract.reasons}
        gone = {ERASED: reasons.get(ERASED, 0) + erased.get(key, 0)}
        accounts[key] = Account(rows_in=entry.rows_in, reasons={**reasons, **gone})
        inputs |= {name: max(version, inputs.get(name, version)) for name, version in entry.inputs.items()}
    return Provenance(
        inputs=inputs,
        accounts=accounts,
        landed={key: entry.landed for key, entry in entries.items() if entry.landed is not None},
        judged_by=next(iter(entries.values())).judged_by,
    )


def _erased(spark: SparkSession, frame: DataFrame, rows: pa.Table, contract: Contract) -> dict[str, int]:
    """Count, by partition, the rows of the layer above that some rows stand for."""
    from pyspark.sql import functions as F

    column = contract.partition_column
    key = F.col(column) if column else F.lit(WHOLE_TABLE)
    counted = _joined(spark, frame, rows, "left_semi").groupBy(key.alias(KEY)).agg(F.expr(contract.stands_for))
    return {str(key): int(count) for key, count in counted.collect()}


def _joined(spark: SparkSession, frame: DataFrame, rows: pa.Table, how: str) -> DataFrame:
    from pyspark.sql import functions as F

    names = [name for name in rows.column_names if name != KEY]
    theirs = rows.select(names).group_by(names).aggregate([])
    view = spark.createDataFrame(theirs.rename_columns([_OTHER + name for name in names]))
    same = reduce(and_, (F.col(name).eqNullSafe(F.col(_OTHER + name)) for name in names))
    return frame.join(view, same, how)


@dataclass(frozen=True, kw_only=True)
class TakingOut:
    """Takes rows of persons out of tables; Spark is opened only if there are any."""

    rows: Rows
    run: RunContext
    spark: Callable[[], AbstractContextManager[SparkSession]]

    def of_dataset(self, contract: Contract, partitions: Collection[str] | None = None) -> list[str]:
        """Take the rows out of a dataset; returns why not, if another run publishes it."""
        with clearing.alone(self.rows.lake, self.rows.events, contract) as since:
            if since is None:
                return [f"{contract.dataset}: {BUSY}"]
            rows = self.rows.of(contract, partitions)
            if rows is not None:
                with self.spark() as spark:
                    self._take_out(spark, rows, contract)
        return []

    def _take_out(self, spark: SparkSession, rows: pa.Table, contract: Contract) -> None:
        lake, events, column = self.rows.lake, self.rows.events, contract.partition_column
        # What was published under a guard that a person has lifted is no worse without some of its rows.
        lifted = frozenset(audit.name for audit in contract.audits)
        target = Target(lake=lake, contract=contract, run=self.run, lifted=lifted)
        # A table that is older than a column has it before its rows are read.
        tables.enforce(spark, lake, carried(contract, lake.caught_up(contract.dataset)))
        entries = events.publications(contract.dataset, pc.unique(rows[KEY]).to_pylist())

        def judged_by(key: str) -> list[tuple[str, str]]:
            return sorted(entries[key].judged_by.items())

        # A commit says by which lists all of its rows were judged.
        for _, group in groupby(sorted(entries, key=judged_by), key=judged_by):
            keys = [*group]
            frame = lake.read(spark, contract.dataset)
            frame = frame.where(frame[column].isin(*keys)) if column else frame
            erased = _erased(spark, frame, rows, contract)
            commit = publish(
                _joined(spark, frame, rows, "left_anti"),
                target,
                change=Overwrite(),
                partitions=keys if column else (),
                provenance=_provenance({key: entries[key] for key in keys}, contract, erased),
            )
            events.record(commit)

    def of_stream(self, stream: StreamedInput) -> list[str]:
        """Take the rows out of the datasets of a stream, and remove its state; returns why not, if it is running."""
        lake, place = self.rows.lake, f"stream {stream.name}"
        with turns.taken(lake, place, [stream.name]) as claimed:
            if not claimed:
                return [f"{place}: it is running: stop it first"]
            if _is_cut_off(lake, stream.contracts):
                return [f"{place}: a batch of it was cut off: run the stream once, which completes it"]
            left = [why for contract in stream.contracts.values() for why in self.of_dataset(contract)]
            if not left:
                # Not by the whole folder: of a removal that was cut off, the newest checkpoint is the last to go.
                folder = stream.checkpoints / stream.name
                checkpoints = [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
                for checkpoint in sorted(checkpoints, key=lambda path: (len(path.name), path.name)):
                    clearing.remove(checkpoint)
            return left


def _is_cut_off(lake: Lake, datasets: Iterable[str]) -> bool:
    """Return whether the newest batch is in some datasets of a stream only: its account counts rows as they were."""
    newest = (next(appended(lake, name), None) for name in datasets)
    commits = (commit.info["appended"] for commit in newest if commit is not None)
    batches = {(commit["stream"], commit["batch"]) for commit in commits}
    return len(batches) > 1


def landing() -> Iterator[tuple[Contract, Landed]]:
    """Pair each dataset of persons with what it reads of the landing zone."""
    for contract in LANDED.values():
        source = landed_input(contract)
        if source is not None and any(column.subject for column in contract.columns):
            yield contract, source


def without_landed_files(look: Snapshot) -> dict[str, list[str]]:
    """Find the published partitions that cannot be computed again, since their landed files are gone."""
    partitions = {}
    for contract, source in landing():
        # A folder may be empty: its files were removed by their age.
        landed = {partition.key for partition in look.landed(source.table, source.grain)}
        rows = {key: entry.rows_out for key, entry in look.published(contract.dataset).items()}
        partitions[contract.dataset] = [key for key in rows if key not in landed and rows[key]]
    return {dataset: keys for dataset, keys in partitions.items() if keys}
