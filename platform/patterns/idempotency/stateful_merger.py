"""Stateful Merger: before an old delivery is merged again, the table is what it was before that delivery came.

Problem: each execution merges its changes into one table. When an old one runs again, its changes meet rows of later
ones, and readers see a table that never was (Merger).

How it works: every merge says in its commit which execution it belongs to, and every restoration how far it went back;
execution time -> table version, the pattern's state table, is derived from these commits
(:mod:`evidence.executions`). An execution that comes after all that the table consists of is merged, no more. Any
other one begins by a restoration to the version before the first merge that must not be seen: its own earlier one, or
that of the next later execution. It is a commit of its own, audited: the table must have the rows again that it had.
Then the execution is merged, and after it the later ones, in their order (`executions.due`); a crash at any moment
leaves them known as not contained, and the next run goes on. A merge that fails for good, by its audit, a constraint, a
lost file of its input or something that nobody foresaw, is not the end of what was there: the table is taken back to
what it was before the restoration, whichever attempt, run or earlier day has made that one; what was merged since is
known as not contained.

The trap: to restore the version that the previous execution has made. What was done in between, a compaction for
instance, is lost then; the version to restore is that of the execution's own merge, less one. And a
vacuum takes files that only old versions have: before anything is touched, every file of the version to restore is
looked for, those that mark rows as removed included (:class:`VersionVacuumed`).

When not to use it: when deliveries do not build on one another (Data Overwrite), or when backfills may show what never
was (Merger). Executions run one at a time, and one that runs again takes all later ones with it: a limit bounds them.

Source: Data Engineering Design Patterns, ch. 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from errors import ConfigurationError, PlatformError
from evidence.events import EventLog
from evidence.executions import EMPTY, applied, history
from lake.commit import WHOLE_TABLE, Commit, Entry, Execution, entries_of, parse
from lake.lake import Lake
from patterns.idempotency.merger import merge
from patterns.quality import constraints_enforcer
from patterns.quality.audit_write_audit_publish import publish, restate
from publish.changes import Rewrite
from publish.contract import Contract
from publish.target import Engine, Provenance, Target
from publish.write_faults import ConcurrentWrite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class VersionVacuumed(PlatformError):
    """The version to restore has lost files, or its place in the log; nothing was touched."""


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
    """Merge the changes of one execution into the table as the executions before it have left it.

    Args:
        spark: The session.
        target: The table, its contract and the run.
        events: The event log.
        period: Key of the execution's period.
        changes: From the table as it is before the execution to the changes, as for `merge`.
        provenance: Inputs and accounts; they are about the table as the execution leaves it.
        lost: Tells of an error without a type of ours whether the server went away, so that a retry can help.

    Returns:
        The commit of the merge; ``repeated`` when this run has made it before and the table still contains it.
        Executions later than this one are not contained afterwards: `executions.due` tells them.

    Raises:
        ConfigurationError: The contract says nothing of executions.
        VersionVacuumed: The version to restore is not there any more.
        ConcurrentWrite: Another run changed the table meanwhile; transient.
        PlatformError: As :func:`merge`. After this error or any other, a table that had been restored, and does not
            have its latest execution again, is as it was before that, unless the error is transient or the server was
            lost: whoever tries again goes on with what is there.
    """
    contract, lake = target.contract, target.lake
    if contract.executed is None:
        raise ConfigurationError(
            what="a stateful merge needs to know how long the period of an execution is",
            where=contract.dataset,
            next_step="declare `executed` in the contract, or merge without state (Merger)",
        )
    seen = lake.version(contract.dataset)
    there = applied(events.executions(contract.dataset))
    own = next((entry for entry in there if entry.partition == period), None)
    if own is not None and own.run_id == target.run.run_id:
        return _published(lake, own)
    kept = [entry for entry in there if entry.partition < period]
    try:
        # An empty table is restored to nothing without a commit.
        restored = (
            seen is not None and len(kept) < len(there) and _restore(spark, target, period, there, seen) is not None
        )
        contained = kept if restored else list(there)
        constraints_enforcer.enforce(spark, lake, contract, engine=target.engine is Engine.TRANSACTION)
        onto = _version_with(contained, target, events, period)
        before = lake.read(spark, contract.dataset, onto)
        said = replace(provenance, execution=Execution(period=period, onto=onto))
        return merge(changes(before), target, said, at=onto)
    except Exception as error:
        passing = error.transient if isinstance(error, PlatformError) else lost(error)
        if not passing:
            _bring_back(spark, target, events, period)
        raise


def restorable(lake: Lake, dataset: str, version: int) -> bool:
    """Tell, without a JVM, whether a version can be restored: the log has it, and the store all of its files."""
    return version == EMPTY or lake.is_whole(dataset, version)


def _version_with(contained: Sequence[Entry], target: Target, events: EventLog, period: str) -> int:
    """Give the version the table is at, if it consists of these executions and no others."""
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
    """Take the table, if it is at that version, back to before the first execution that must not be in it."""
    from pyspark.errors import PySparkException

    contract, lake = target.contract, target.lake
    kept = [entry for entry in there if entry.partition < period]
    version = there[len(kept)].version - 1 if kept else EMPTY
    if not restorable(lake, contract.dataset, version):
        raise _vacuumed(contract, period, version)
    try:
        back = Execution(period=period, onto=onto, restores=version)
        return _take_back(spark, target, back, kept[-1].rows_out if kept else 0)
    except PySparkException as error:
        # Delta restores nothing that a vacuum would be allowed to take, whether it has or not.
        if "BEYOND_DELETED_FILE_RETENTION" not in str(error):
            raise
        raise _vacuumed(contract, period, version) from error


def _bring_back(spark: SparkSession, target: Target, events: EventLog, period: str) -> None:
    """Take a table that lacks its latest execution back to the newest version that had it, as far as that is there."""
    dataset = target.contract.dataset
    held = history(events.executions(dataset))
    latest = max((made[-1].partition for _, made in held if made), default=None)
    had = max((number for number, (_, made) in enumerate(held) if made and made[-1].partition == latest), default=0)
    if had + 1 < len(held) and restorable(target.lake, dataset, version := held[had + 1][0] - 1):
        onto = _version_with(held[-1][1], target, events, period)
        _take_back(spark, target, Execution(period=period, onto=onto, restores=version), held[had][1][-1].rows_out)


def _take_back(spark: SparkSession, target: Target, back: Execution, rows: int) -> Commit | None:
    """Restore a version, or nothing, in an audited commit of its own: the table has the rows again that it had."""
    dataset, version = target.contract.dataset, back.restores
    provenance = Provenance(execution=back, expected={WHOLE_TABLE: {"rows": rows}})
    if target.engine is Engine.CHECKPOINT:
        then = target.lake.read(spark, dataset, None if version == EMPTY else version)
        restored = then.limit(0) if version == EMPTY else then
        return publish(restored, target, change=Rewrite(at=back.onto), partitions=(), provenance=provenance)
    sql = "DELETE FROM {table}" if version == EMPTY else f"RESTORE TABLE {{table}} TO VERSION AS OF {version}"
    return restate(spark, target, sql, provenance, at=back.onto)


def _vacuumed(contract: Contract, period: str, version: int) -> VersionVacuumed:
    return VersionVacuumed(
        what=f"version {version}, on which {period} has to be merged, is older than what a vacuum leaves",
        where=contract.dataset,
        next_step="rebuild the table from its first execution on, which needs no earlier version: "
        f"blogdata plan --replay {contract.dataset} --partitions all",
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
