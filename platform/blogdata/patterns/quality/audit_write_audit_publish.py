"""Audit-Write-Audit-Publish: no row is visible before it was audited.

Problem: a job that writes first and checks afterwards shows its readers the bad rows in between; a job that
stages a copy, checks it and moves it pays for every row twice.

How it works: every write to a table goes through :func:`publish`. Delta's own write command runs inside a transaction
that stays open. The audits of the dataset's contract, including the row account against the layer above, read the
files it wrote. Only then is the transaction committed, with the run, the inputs' versions, the accounts and all
measures in the commit. After a failed audit, or if the process is killed at any moment, the table is unchanged; the
unreferenced files are left to vacuum. The account is the audit of the input: a step reads its inputs at one version
and states what the layer above recorded for it.

What a failed audit does is declared with it: refuse the rows, or publish them with a warning in the commit and in the
ledger. Refused rows are kept under a name for two weeks (:mod:`blogdata.publish.refused`); a person may lift one audit
for one run. Single bad rows are dispatched before, by a Dead-Letter; a stream is judged over its newest rows, batch by
batch.

The trap: the audited files must be the published ones. Auditing the frame instead evaluates it a second time, so a
nondeterministic frame publishes rows that were never audited.

When not to use it: never bypass it. Where Spark cannot load the engine's jar, ``Engine.CHECKPOINT`` audits a
checkpoint of the frame and then writes that checkpoint, for 1.6 times the cost and without column lineage. There, too,
no unaudited row is visible, and rows computed from the table's own rows (a merge) are written only if these have not
changed. But an overwrite begins its transaction only after the audit: of two concurrent overwrites the later one
replaces the other's rows, as if started after it, where ``Engine.TRANSACTION`` refuses it.

Source: Data Engineering Design Patterns, ch. 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from blogdata.errors import ConfigurationError
from blogdata.lake import members
from blogdata.lake.commit import Commit
from blogdata.patterns.quality import constraints_enforcer, schema_migrator
from blogdata.patterns.storage import horizontal_partitioner
from blogdata.publish import publication
from blogdata.publish.changes import AppendBatch, Overwrite, Statement, Upsert
from blogdata.publish.migrations import carried
from blogdata.publish.target import Companion, Engine, Provenance, Target
from blogdata.publish.write_faults import PublicationUnknown, translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def publish(
    frame: DataFrame,
    target: Target,
    *,
    change: Overwrite | Upsert | AppendBatch,
    partitions: Sequence[str],
    provenance: Provenance,
    companions: Sequence[Companion] = (),
) -> Commit:
    """Write a frame to a table, audited, in one commit; repeated calls of a run (or stream batch) change nothing.

    Args:
        frame: Rows with the columns of the contract; for an upsert also the one that marks rows as removed.
        target: The table, its contract and the run.
        change: How the rows change the table; every row of an overwrite must match its predicate.
        partitions: Partition keys of the batch; empty for a table that is written whole.
        provenance: Inputs, accounts and landed files.
        companions: Tables that appear with this one; the same commit replaces their partitions.

    Returns:
        The commit; ``repeated`` when the batch had already been published.

    Raises:
        AuditFailed: Rows broke the contract or the account; nothing was published.
        RowsOutsidePredicate: A row does not match the predicate; nothing was published.
        ConstraintViolated: Delta refused a row that no audit covers; nothing was published.
        ConcurrentWrite: Another run published the same partitions meanwhile, or the rows from which a rewrite was
            computed have changed; transient.
        PartitionKeyRefused: The batch has more partitions than a table can have; nothing was published.
        SchemaMismatch: The frame's columns differ from those of the contract.
    """
    lake = target.lake
    contract = carried(target.contract, lake.caught_up(target.contract.dataset) if target.contract.migrations else None)
    target = replace(target, contract=contract)
    horizontal_partitioner.check_key(contract, partitions)
    marks = [f"`{change.deleted}`"] if isinstance(change, Upsert) and change.deleted else []
    with translated(contract.dataset, partitions):
        for each in (contract, *(companion.contract for companion in companions)):
            constraints_enforcer.enforce(
                frame.sparkSession, lake, each, engine_loaded=target.engine is Engine.TRANSACTION
            )
        rows = schema_migrator.both(frame, contract).select(
            *[f"`{column.name}`" for column in contract.columns], *marks
        )
    return publication.write(rows, target, change, partitions, provenance, companions)


def published(target: Target, partitions: Sequence[str]) -> Commit:
    """Find the commit with which the target's run published a batch.

    Args:
        target: The table, its contract and the run.
        partitions: Partition keys of the batch.

    Raises:
        PublicationUnknown: The run has not published that batch.
    """
    return publication.receipt(target.lake, target.contract.dataset, publication.commit_id_of(target, partitions), None)


def restate(
    spark: SparkSession, target: Target, sql: str, provenance: Provenance, *, at: int | None = None
) -> Commit | None:
    """Change a table by one of Delta's own statements, in one commit after an audit of the resulting table.

    Args:
        spark: The session.
        target: The table, its contract and the run; it exists.
        sql: The statement; `{table}` stands for the table.
        provenance: Accounts of the table after the statement.
        at: Version of the table the statement is for; None: the current one.

    Returns:
        The commit; None if the statement changed nothing, e.g. a compaction of a compact table.

    Raises:
        ConfigurationError: The engine cannot audit statements.
        BehindAPointer: The dataset lives in members; a statement changes a single table.
        PlatformError: As :func:`publish`.
    """
    contract, lake = target.contract, target.lake
    if target.engine is Engine.CHECKPOINT:
        raise ConfigurationError(
            what="without the engine's jar a statement cannot be audited before it is committed",
            where=contract.dataset,
            next_step="overwrite the partitions it concerns instead",
        )
    members.refuse_direct(lake.caught_up(contract.dataset), contract.dataset)
    change = Statement(sql=sql, path=lake.path(contract.dataset), at=at)
    before = lake.version(contract.dataset)
    try:
        return publication.write(spark.range(0).toDF("nothing"), target, change, (), provenance)
    except PublicationUnknown:
        if lake.version(contract.dataset) != before:
            raise
        return None
