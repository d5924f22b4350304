"""Stateful Merger: before an old delivery is merged again, the table is restored to its state before that delivery.

Problem: each execution merges its changes into one table. If an old one is rerun, its changes are merged into rows of
later ones, and readers see a state that never existed (Merger).

How it works: the commit of a merge records its execution, and the commit of a restoration the version it restored
(:func:`execute`). The pattern's state table (execution time -> table version) is derived from these commits
(:mod:`blogdata.ledger.executions`). An execution later than all those in the table is only merged. Any other one
first restores the version before the first merge that must not be visible: its own earlier merge, or that of the next
later execution. The restoration is an audited commit of its own. Then the execution is merged, and after it the later
ones, in order; after a crash at any point they count as not contained, and the next run continues with them. If a merge
fails permanently, the table is taken back to its state before the restoration, whichever attempt, run or earlier day
made that.

Where no version is left, or the store has none, raw rows that say their execution rebuild the table (figure 4-6): all
executions are replayed onto the empty table. Here `bronze.users` has them, by `load_date`.

The trap: restoring the version that the previous execution made. Commits in between, e.g. a compaction, would be lost;
the version to restore is that of the execution's own merge minus one. And a vacuum deletes files that only old versions
use: before anything is changed, all files of the version to restore are checked for existence, deletion vectors
included.

When not to use it: when deliveries do not build on one another (Data Overwrite), or when backfills may show a state
that never existed (Merger). Executions run one at a time, and a rerun repeats all later ones; a limit bounds their
number.

Source: Data Engineering Design Patterns, ch. 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from blogdata.contract.publication import WHOLE_TABLE, Commit, Entry, Execution, entries_of, parse
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Replay
from blogdata.ledger.events import EventLog
from blogdata.ledger.executions import EMPTY, applied, history
from blogdata.table import tables
from blogdata.table.committer import ConcurrentWrite
from blogdata.table.lake import Lake
from blogdata.table.publish import publish
from blogdata.table.target import Provenance, Rewrite, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def execute(
    spark: SparkSession,
    target: Target,
    events: EventLog,
    period: str,
    changes: Callable[[DataFrame], DataFrame],
    provenance: Provenance,
    *,
    lost: Callable[[Exception], bool] = lambda _: False,
) -> Commit:
    """Merge the changes of one execution into the table as the previous executions left it.

    The table does not contain later executions afterwards: `executions.due` lists them. After an error, a table that
    was restored is taken back to its state before the restoration. If the error is transient or the server was lost, it
    is left as it is, and a retry continues from there.

    Args:
        changes: Computes the changes, as `merge` takes them, from the table before the execution.
        lost: Checks whether an error that is no `PlatformError` means a lost server, so that a retry can help.
    """
    from blogdata.patterns.idempotency.merger import merge

    contract, lake = target.contract, target.lake
    # First: a version to restore is restored by the contract of today.
    tables.enforce(spark, lake, contract)
    seen = lake.version(contract.dataset)
    there = applied(events.executions(contract.dataset))
    own = next((entry for entry in there if entry.partition == period), None)
    if own is not None and own.run_id == target.run.run_id:
        return _published(lake, own)
    kept = [entry for entry in there if entry.partition < period]
    try:
        if seen is not None and len(kept) < len(there):
            _restore(spark, target, period, there, seen)
        onto = _version_with(kept, target, events, period)
        before = lake.read(spark, contract.dataset, onto)
        said = replace(provenance, execution=Execution(period=period, onto=onto))
        return merge(changes(before), target, said, at=onto)
    except Exception as error:
        passing = error.transient if isinstance(error, PlatformError) else lost(error)
        if not passing:
            _restore_newest_with_latest(spark, target, events, period)
        raise


def restorable(lake: Lake, dataset: str, version: int) -> bool:
    """Check, without a JVM, whether a version can be restored: the log has it, and all of its files exist."""
    return version == EMPTY or lake.is_whole(dataset, version)


def _version_with(contained: Sequence[Entry], target: Target, events: EventLog, period: str) -> int:
    """Return the table's current version; refuse unless it contains exactly these executions."""
    dataset = target.contract.dataset
    version = target.lake.version(dataset)
    assert version is not None
    if list(applied(events.executions(dataset))) != list(contained):
        raise ConcurrentWrite(
            what=f"another run merged or restored something while {period} was about to be merged",
            where=dataset,
            next_step="nothing of this execution was merged; it is retried, or run it again",
        )
    return version


def _restore(spark: SparkSession, target: Target, period: str, there: Sequence[Entry], onto: int) -> None:
    """Restore the version before the first execution that must not be visible; refused unless it is still at `onto`."""
    dataset = target.contract.dataset
    kept = [entry for entry in there if entry.partition < period]
    version = there[len(kept)].version - 1 if kept else EMPTY
    if not restorable(target.lake, dataset, version):
        raise PlatformError(
            what=f"version {version}, on which {period} has to be merged, is older than what a vacuum leaves",
            where=dataset,
            next_step=Remedy(
                "rebuild the table from its first execution on, which needs no earlier version: ",
                Replay(dataset=dataset, partitions="all"),
            ),
        )
    back = Execution(period=period, onto=onto, restores=version)
    _commit_restoration(spark, target, back, kept[-1].rows_out if kept else 0)


def _restore_newest_with_latest(spark: SparkSession, target: Target, events: EventLog, period: str) -> None:
    """Restore the newest version that had the latest execution, if the table lacks it and that version still exists."""
    dataset = target.contract.dataset
    held = history(events.executions(dataset))
    latest = max((made[-1].partition for _, made in held if made), default=None)
    had = max((number for number, (_, made) in enumerate(held) if made and made[-1].partition == latest), default=0)
    if had + 1 < len(held) and restorable(target.lake, dataset, version := held[had + 1][0] - 1):
        onto = _version_with(held[-1][1], target, events, period)
        _commit_restoration(
            spark, target, Execution(period=period, onto=onto, restores=version), held[had][1][-1].rows_out
        )


def _commit_restoration(spark: SparkSession, target: Target, back: Execution, rows: int) -> None:
    """Write the rows of a version, or none, in an audited commit of its own; the audit compares their number."""
    from pyspark.sql import functions as F

    version = None if back.restores == EMPTY else back.restores
    then = target.lake.read(spark, target.contract.dataset, version)
    for column in target.contract.columns:
        if column.name not in then.columns:
            then = then.withColumn(column.name, F.expr(column.default or "NULL").cast(column.type))
    provenance = Provenance(execution=back, expected={WHOLE_TABLE: {"rows": rows}})
    restored = then.limit(0) if version is None else then
    publish(restored, target, change=Rewrite(at=back.onto), partitions=(), provenance=provenance)


def _published(lake: Lake, entry: Entry) -> Commit:
    _, line = next(lake.commits(lake.at(entry.dataset, entry.version)))
    info = parse(line.get("userMetadata"))
    assert info is not None, f"{entry.dataset} has no version {entry.version}, which its events name"
    entries = entries_of(entry.dataset, entry.version, info)
    return Commit(dataset=entry.dataset, version=entry.version, entries=entries, info=info, repeated=True)
