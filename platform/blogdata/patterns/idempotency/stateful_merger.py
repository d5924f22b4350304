"""Stateful Merger: before an old delivery is merged again, the table is restored to its state before that delivery.

Problem: each execution merges its changes into one table. If an old one is rerun, its changes are merged into rows of
later ones, and readers see a state that never existed (Merger).

How it works: the commit of a merge records its execution, and the commit of a restoration the version it restored
(:func:`execute`). The pattern's state table (execution time -> table version) is derived from these commits
(:mod:`blogdata.evidence.executions`). An execution later than all those in the table is only merged. Any other one
first restores the version before the first merge that must not be visible: its own earlier merge, or that of the next
later execution. The restoration is an audited commit of its own: the table must have as many rows again as it had then.
Then the execution is merged, and after it the later ones, in order (`executions.due`). After a crash at any point they
count as not contained, and the next run continues with them. If a merge fails permanently (its audit, a constraint, a
lost input file, an unforeseen error), the earlier state is not lost: the table is taken back to its state before the
restoration, whichever attempt, run or earlier day made that restoration. Executions merged since then count as not
contained.

Where no version is left, or the store has none, raw rows that say their execution rebuild the table (figure 4-6). Here
`bronze.users` has them, by `load_date`: all executions are replayed onto the empty table, which needs no version. A
test does it the book's way in PostgreSQL (raw rows of the backfilled execution and of later ones are removed, and the
newest raw row of each key is the table), and finds after each execution what the versions of Delta show.

The trap: restoring the version that the previous execution made. Commits in between, e.g. a compaction, would be lost;
the version to restore is that of the execution's own merge minus one. And a vacuum deletes files that only old versions
use: before anything is changed, all files of the version to restore are checked for existence, deletion vectors
included (:class:`VersionVacuumed`).

When not to use it: when deliveries do not build on one another (Data Overwrite), or when backfills may show a state
that never existed (Merger). Executions run one at a time, and a rerun repeats all later ones; a limit bounds their
number.

Source: Data Engineering Design Patterns, ch. 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from blogdata.errors import ConfigurationError, PlatformError
from blogdata.errors.remedies import Remedy, Replay
from blogdata.evidence.events import EventLog
from blogdata.evidence.executions import EMPTY, applied, history
from blogdata.lake.commit import WHOLE_TABLE, Commit, Entry, Execution, entries_of, parse
from blogdata.lake.committer import ConcurrentWrite
from blogdata.lake.lake import Lake, marks_rows
from blogdata.patterns.idempotency.merger import merge
from blogdata.publish import tables
from blogdata.publish.changes import Restore, Rewrite
from blogdata.publish.contract import Contract
from blogdata.publish.publish import publish
from blogdata.publish.target import Provenance, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class VersionVacuumed(PlatformError):
    """Raised when the version to restore has lost files or is no longer in the log; nothing was changed."""


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

    Args:
        changes: Computes the changes, as `merge` takes them, from the table before the
            execution.
        lost: Checks whether an error that is no `PlatformError` means a lost server, so that a retry can help.

    Returns:
        The commit of the merge; ``repeated`` if this run has made it before and the table still contains it.
        The table does not contain later executions afterwards: `executions.due` lists them.

    Raises:
        VersionVacuumed: The version to restore no longer exists.
        PlatformError: As :func:`merge`. After this or any other error, a table that was restored, and does not have
            its latest execution again, is taken back to its state before the restoration. If the error is transient or
            the server was lost, the table is left as it is, and a retry continues from there.
    """
    contract, lake = target.contract, target.lake
    if contract.executed is None:
        raise ConfigurationError(
            what="a stateful merge needs to know how long the period of an execution is",
            where=contract.dataset,
            next_step="declare `executed` in the contract, or merge without state (Merger)",
        )
    # First: a version to restore is restored by the contract of today.
    tables.enforce(spark, lake, contract)
    seen = lake.version(contract.dataset)
    there = applied(events.executions(contract.dataset))
    own = next((entry for entry in there if entry.partition == period), None)
    if own is not None and own.run_id == target.run.run_id:
        return _published(lake, own)
    kept = [entry for entry in there if entry.partition < period]
    try:
        # Restoring a table that is already empty to EMPTY makes no commit.
        restored = (
            seen is not None and len(kept) < len(there) and _restore(spark, target, period, there, seen) is not None
        )
        contained = kept if restored else list(there)
        onto = _version_with(contained, target, events, period)
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


def _restore(spark: SparkSession, target: Target, period: str, there: Sequence[Entry], onto: int) -> Commit | None:
    """Restore the version before the first execution that must not be visible; refused unless it is still at `onto`."""
    from pyspark.errors import PySparkException

    contract, lake = target.contract, target.lake
    kept = [entry for entry in there if entry.partition < period]
    version = there[len(kept)].version - 1 if kept else EMPTY
    if not restorable(lake, contract.dataset, version):
        raise _vacuumed(contract, period, version)
    try:
        back = Execution(period=period, onto=onto, restores=version)
        return _commit_restoration(spark, target, back, kept[-1].rows_out if kept else 0)
    except PySparkException as error:
        # Delta refuses to read a version whose files a vacuum may delete, even if none has run, unless the server is
        # configured as the platform's own ones are.
        if "BEYOND_DELETED_FILE_RETENTION" not in str(error):
            raise
        raise _vacuumed(contract, period, version) from error


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


def _commit_restoration(spark: SparkSession, target: Target, back: Execution, rows: int) -> Commit | None:
    """Restore a version, or the empty table, in an audited commit of its own; the audit compares the number of rows.

    The files of a version that lacks a column, or whose rows are marked as removed, are written again.
    """
    from pyspark.sql import functions as F

    dataset, version = target.contract.dataset, back.restores
    provenance = Provenance(execution=back, expected={WHOLE_TABLE: {"rows": rows}})
    then = target.lake.read(spark, dataset, None if version == EMPTY else version)
    table = target.lake.caught_up(dataset)
    assert table is not None
    lacking = [column for column in target.contract.columns if column.name not in then.columns]
    change = Rewrite(at=back.onto)
    # Files are added as they are: the marks of either version would be lost.
    if (
        version is not None
        and version != EMPTY
        and not (lacking or marks_rows(table) or marks_rows(target.lake.at(dataset, version)))
    ):
        change = Restore(at=back.onto, to=version)
    for column in lacking:
        then = then.withColumn(column.name, F.expr(column.default or "NULL").cast(column.type))
    return publish(
        then.limit(0) if version == EMPTY else then, target, change=change, partitions=(), provenance=provenance
    )


def _vacuumed(contract: Contract, period: str, version: int) -> VersionVacuumed:
    return VersionVacuumed(
        what=f"version {version}, on which {period} has to be merged, is older than what a vacuum leaves",
        where=contract.dataset,
        next_step=Remedy(
            "rebuild the table from its first execution on, which needs no earlier version: ",
            Replay(dataset=contract.dataset, partitions="all"),
        ),
    )


def _published(lake: Lake, entry: Entry) -> Commit:
    table = lake.caught_up(entry.dataset)
    assert table is not None
    for version, line in lake.commits(table, entry.version - 1):
        info = parse(line.get("userMetadata"))
        if version == entry.version and info is not None:
            entries = entries_of(entry.dataset, entry.version, info)
            return Commit(dataset=entry.dataset, version=entry.version, entries=entries, info=info, repeated=True)
    raise AssertionError(f"{entry.dataset} has no version {entry.version}, which its events name")
