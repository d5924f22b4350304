"""Stateful Merger: an old delivery that runs again is merged into the table as it was before that delivery.

Problem: each execution merges its changes into one table. If an old one is rerun, its changes are merged into rows of
later ones, and readers see a state that never existed (Merger).
How it works: the commit of a merge records its execution (:func:`execute`). The pattern's state table (execution to
version) is derived from these commits (:mod:`blogdata.ledger.executions`). An execution later than all those in the
table is merged into its rows; any other one into the rows of an earlier version: that before its own earlier merge, or
before the merge of the next later execution. Restoration and merge are one commit, so a failed one leaves the table as
it was. The later executions are merged after it, in order; after a crash they count as not contained, and the next run
continues with them. Where no version is left, all executions are replayed onto the empty table from raw rows that say
their execution (figure 4-6; here `bronze.users`).
The trap: restoring the version that the previous execution made: commits in between, e.g. a compaction, would be lost;
the version to restore is that of the execution's own merge minus one. And a vacuum deletes files that only old versions
use: before anything is computed, all files of the version to restore are checked for existence.
When not to use it: when deliveries do not build on one another (Data Overwrite), or when backfills may show a state
that never existed (Merger). Executions run one at a time, and a rerun repeats all later ones; a limit bounds their
number.
Source: "Data Engineering Design Patterns", ch. 4.
"""

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from blogdata.contract.publication import Commit, Entry, Execution, entries_of, parse
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Replay
from blogdata.ledger.events import EventLog
from blogdata.ledger.executions import EMPTY, applied, base_of
from blogdata.patterns.idempotency.merger import merge
from blogdata.table import tables
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance, Target


def execute(
    spark: SparkSession,
    target: Target,
    events: EventLog,
    period: str,
    changes: Callable[[DataFrame], DataFrame],
    provenance: Provenance,
) -> Commit:
    """Merge the changes of one execution into the table as the previous executions left it, in one commit.

    `changes` computes them, as `merge` takes them, from the rows before the execution. The table does not contain later
    executions afterwards: `executions.due` lists them.
    """
    contract, lake = target.contract, target.lake
    tables.enforce(spark, lake, contract)
    # Before the executions are read: what commits after this version makes the write be refused.
    seen = lake.version(contract.dataset)
    assert seen is not None
    contained = applied(events.history(contract.dataset))
    merged = next((entry for entry in contained if entry.partition == period), None)
    if merged is not None and merged.run_id == target.run.run_id:
        return _published(lake, merged)
    kept = [entry for entry in contained if entry.partition < period]
    is_rerun = len(kept) < len(contained)
    base = (base_of(contained[len(kept)]) if kept else EMPTY) if is_rerun else None
    before = lake.read(spark, contract.dataset, seen) if base is None else _restored(spark, target, base, period)
    marked = replace(provenance, execution=Execution(period=period, onto=seen, restores=base))
    return merge(changes(before), target, marked, at=seen, into=before if is_rerun else None)


def restorable(lake: Lake, dataset: str, version: int) -> bool:
    """Check, without a JVM, whether a version can be restored: the log has it, and all of its files exist."""
    return version == EMPTY or lake.is_whole(dataset, version)


def _restored(spark: SparkSession, target: Target, version: int, period: str) -> DataFrame:
    """Read the rows of an earlier version; a column that it lacks has its default."""
    dataset = target.contract.dataset
    if not restorable(target.lake, dataset, version):
        raise PlatformError(
            what=f"version {version}, on which {period} has to be merged, is older than what a vacuum leaves",
            where=dataset,
            next_step=Remedy(
                "rebuild the table from its first execution on, which needs no earlier version: ",
                Replay(dataset=dataset, partitions="all"),
            ),
        )
    rows = target.lake.read(spark, dataset, None if version == EMPTY else version)
    for column in target.contract.columns:
        if column.name not in rows.columns:
            rows = rows.withColumn(column.name, F.expr(column.default or "NULL").cast(column.type))
    return rows.limit(0) if version == EMPTY else rows


def _published(lake: Lake, entry: Entry) -> Commit:
    _, line = next(lake.commits(lake.at(entry.dataset, entry.version)))
    info = parse(line.get("userMetadata"))
    assert info is not None, f"{entry.dataset} has no version {entry.version}, which its events name"
    entries = entries_of(entry.dataset, entry.version, info)
    return Commit(dataset=entry.dataset, version=entry.version, entries=entries, info=info, repeated=True)
