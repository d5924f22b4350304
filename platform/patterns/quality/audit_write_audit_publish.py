"""Audit-Write-Audit-Publish: nobody ever reads a row that was not audited.

Problem: a job that writes first and checks afterwards shows its readers the bad rows in between; a job that
stages a copy, checks it and moves it pays for every row twice.

How it works: :func:`publish` is the one way rows get into a table. Delta's own write command runs inside a
transaction that stays open; the audits of the dataset's contract, the row account against the layer above
included, read the very files it wrote; only then is the transaction committed, with the run, the inputs' versions,
the accounts and all measures in the commit. A failed audit, or a process killed at any moment, leaves the table
as it was and files no version names, for vacuum. The input audit is the account: a step reads its inputs at one version
and states what the layer above recorded for it.

The trap: the audited files must be the published ones. Auditing the frame instead evaluates it a second time, and
a frame that is not deterministic then publishes rows that nobody looked at.

When not to use it: never bypass it. Where Spark cannot load the engine's jar, ``Engine.CHECKPOINT`` writes a
checkpoint of the frame after auditing that checkpoint, for 1.6 times the cost and without column lineage. Nobody reads
a row that was not audited there, either, and rows that were computed from the table's own (a merge) are written onto
these or not at all. But an overwrite begins its transaction only after the audit: of two at once, the later one
replaces the other's rows as if it had been started after it, where ``Engine.TRANSACTION`` refuses it.

Source: Data Engineering Design Patterns, ch. 9.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from errors import ConfigurationError
from lake import members
from lake.commit import Account, Commit, Execution, entries_of, parse
from lake.lake import Lake
from patterns.quality import constraints_enforcer
from patterns.storage import horizontal_partitioner
from publish import companion_files, kept_rows, unmoved
from publish.audit import AuditSpec, judge, specify
from publish.changes import Append, Change, Overwrite, Rewrite, Statement, Upsert
from publish.companion_files import Beside
from publish.contract import Contract
from publish.run import RunContext
from publish.write_faults import AuditFailed, ConstraintViolated, PublicationUnknown, translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession


class Engine(str, Enum):
    """How a write is audited before it is visible."""

    TRANSACTION = "transaction"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where and under which promise rows are written.

    Args:
        lake: The tables' root.
        contract: What is promised about the dataset.
        run: Who writes.
        engine: How the rows are audited.
        probe: Folder through which a test steps a write through its phases; None in real use.
    """

    lake: Lake
    contract: Contract
    run: RunContext
    engine: Engine = Engine.TRANSACTION
    probe: str | None = None


@dataclass(frozen=True, kw_only=True)
class Companion:
    """Rows of another table that appear with those of the fact, for the same partitions (Transactional Writer).

    Args:
        contract: Of the other table; its `appears_with` names the fact.
        frame: All its rows for the partitions; looked at only when there are any.
        above: Measure of the fact: rows of the layer above that the companion accounts for.
        kept: Measure of the fact: how many of these the companion has.
        otherwise: Why it does not have the others.
    """

    contract: Contract
    frame: DataFrame
    above: str
    kept: str
    otherwise: str


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What the rows were computed from.

    Args:
        inputs: Dataset to the table version that was read.
        accounts: Partition to what the layer above has for it.
        expected: Further figures a partition must have, by partition and measure.
        landed: Partition to the fingerprint of the landed files it was read from.
        execution: Which execution it is, for a table that is executed by period.
    """

    inputs: Mapping[str, int] = field(default_factory=dict)
    accounts: Mapping[str, Account] = field(default_factory=dict)
    expected: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    landed: Mapping[str, str] = field(default_factory=dict)
    execution: Execution | None = None


def publish(
    frame: DataFrame,
    target: Target,
    *,
    change: Overwrite | Upsert | Append,
    partitions: Sequence[str],
    provenance: Provenance,
    companions: Sequence[Companion] = (),
) -> Commit:
    """Change a table by a frame, audited, in one commit, once per run; of a stream, once per batch.

    Args:
        frame: The rows, with the columns of the contract, and for an upsert its mark of removed rows.
        target: The table, its contract and the run.
        change: What the rows do; every row of an overwrite must match its predicate.
        partitions: Partition keys of the batch; empty for a table that is written whole.
        provenance: Inputs, accounts and landed files.
        companions: Tables that appear with this one; the same commit replaces their partitions.

    Returns:
        The commit; ``repeated`` when the batch had already been published.

    Raises:
        AuditFailed: Rows broke the contract or the account; nothing was published.
        RowsOutsidePredicate: A row does not match the predicate; nothing was published.
        ConstraintViolated: Delta refused a row that no audit covers; nothing was published.
        ConcurrentWrite: Another run published the same partitions meanwhile, or the table does not have the rows any
            more that a rewrite was computed from; transient.
        PartitionKeyRefused: The batch has more partitions than a table bears; nothing was published.
        SchemaMismatch: The frame's columns are not the contract's.
    """
    contract, lake = target.contract, target.lake
    horizontal_partitioner.check_key(contract, partitions)
    marks = [f"`{change.deleted}`"] if isinstance(change, Upsert) and change.deleted else []
    with translated(contract.dataset, partitions):
        for each in (contract, *(companion.contract for companion in companions)):
            constraints_enforcer.enforce(frame.sparkSession, lake, each, engine=target.engine is Engine.TRANSACTION)
        rows = frame.select(*[f"`{column.name}`" for column in contract.columns], *marks)
    return _publish(rows, target, change, partitions, provenance, companions)


def published(target: Target, partitions: Sequence[str]) -> Commit:
    """Give what the target's run has published for a batch.

    Args:
        target: The table, its contract and the run.
        partitions: Partition keys of the batch.

    Raises:
        PublicationUnknown: It has published nothing for it.
    """
    return receipt(target.lake, target.contract.dataset, commit_id_of(target, partitions), None)


def restate(
    spark: SparkSession, target: Target, sql: str, provenance: Provenance, *, at: int | None = None
) -> Commit | None:
    """Change a table by one of Delta's own statements, audited as it would leave the table, in one commit.

    Args:
        spark: The session.
        target: The table, its contract and the run; it exists.
        sql: The statement; `{table}` stands for the table.
        provenance: Accounts of the table as it is afterwards.
        at: Version of the table the statement is for; None: whichever it is at.

    Returns:
        The commit; None when there was nothing to change, as for a compaction of what is compact.

    Raises:
        ConfigurationError: The engine cannot audit statements.
        BehindAPointer: The dataset lives in members; a statement is for one table.
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
        return _publish(spark.range(0).toDF("nothing"), target, change, (), provenance)
    except PublicationUnknown:
        if lake.version(contract.dataset) != before:
            raise
        return None


def _publish(
    rows: DataFrame,
    target: Target,
    change: Change,
    partitions: Sequence[str],
    provenance: Provenance,
    companions: Sequence[Companion] = (),
) -> Commit:
    contract, lake = target.contract, target.lake
    commit_id = (
        change.commit_id(contract.dataset)
        if isinstance(change, Append)
        else commit_id_of(target, partitions, provenance.execution)
    )
    info = _info(target, commit_id, change, provenance, time.time())
    spec = specify(contract, partitions, provenance.accounts, info, expected=provenance.expected)
    before = lake.version(contract.dataset)
    try:
        with translated(contract.dataset, partitions):
            beside = [_beside(companion, target, partitions, info) for companion in companions]
            _write(rows, target, spec, change, commit_id, beside)
    except ConstraintViolated as refused:
        # Delta names the first bad row it meets; a person wants everything that is wrong with the batch.
        found = judge(rows, spec).violations if isinstance(change, Overwrite | Append) else ()
        if not found:
            raise
        raise AuditFailed(contract.dataset, found) from refused
    return receipt(lake, contract.dataset, commit_id, before)


def _beside(companion: Companion, target: Target, partitions: Sequence[str], info: Mapping[str, Any]) -> Beside:
    contract = companion.contract
    own = {**info, "commit_id": commit_id_of(replace(target, contract=contract), partitions), "landed": {}}
    return Beside(
        path=target.lake.path(contract.dataset),
        rows=companion.frame.select(*[f"`{column.name}`" for column in contract.columns]),
        spec=specify(contract, partitions, {}, own),
        above=companion.above,
        kept=companion.kept,
        otherwise=companion.otherwise,
    )


def commit_id_of(target: Target, partitions: Sequence[str], execution: Execution | None = None) -> str:
    """Give what identifies a publication: the dataset, the partitions (or the execution) and the run."""
    # A run may publish several batches that begin and end alike; they are told apart by what lies between.
    batch = hashlib.sha256(",".join(partitions).encode()).hexdigest()[:12]
    span = f"{partitions[0]}..{partitions[-1]}:{batch}" if partitions else "all"
    if execution is not None:
        # What was restored over is published again by the same run: on another version it is another batch.
        what = "" if execution.restores is None else f" back to {execution.restores}"
        span = f"{execution.period} on {execution.onto}{what}"
    return f"{target.contract.dataset}/{span}/{target.run.run_id}"


def _info(target: Target, commit_id: str, change: Change, provenance: Provenance, started: float) -> dict[str, Any]:
    run = target.run
    return {
        "commit_id": commit_id,
        "change": change.options(),
        **({"appended": asdict(change)} if isinstance(change, Append) else {}),
        "started_at": started,
        "inputs": dict(provenance.inputs),
        "landed": dict(provenance.landed),
        **({} if provenance.execution is None else {"execution": asdict(provenance.execution)}),
        "run": {
            "run_id": run.run_id,
            "job": run.job,
            "code_version": run.code_version,
            "trigger": run.trigger,
            "attempt": run.attempt,
        },
    }


def _write(
    rows: DataFrame, target: Target, spec: AuditSpec, change: Change, commit_id: str, beside: Sequence[Beside]
) -> None:
    path = target.lake.path(target.contract.dataset)
    # All batches of a stream are one writer to Delta, which so keeps one line for the stream, not one for each batch.
    mode, writer_id, number = "overwrite", commit_id, 1
    if isinstance(change, Append):
        mode, writer_id, number = "append", change.writer_id(target.contract.dataset), change.batch
    options = {**change.options(), "txnAppId": writer_id, "txnVersion": str(number)}
    if target.engine is Engine.CHECKPOINT:
        with kept_rows.computed(rows) as kept:
            _audited(kept, target, spec, change, beside).mode(mode).options(**options).save(path)
        return
    writer = rows.write.format("audited-delta").mode(mode).option("audit", json.dumps(spec.as_json()))
    if target.probe:
        writer = writer.option("probe", target.probe)
    with companion_files.offered(beside, change.options()) as offer:
        writer.options(**options, **offer).save(path)


def _audited(
    kept: DataFrame, target: Target, spec: AuditSpec, change: Change, beside: Sequence[Beside]
) -> DataFrameWriter:
    """Audit rows before they are written, where Spark may not load the engine."""
    judgement = judge(kept, spec)
    if judgement.violations:
        raise AuditFailed(target.contract.dataset, judgement.violations)
    info = {
        **spec.info,
        "measures": judgement.measures,
        "breakdowns": judgement.breakdowns,
        "column_lineage": {},
        "files": 0,
        "bytes": 0,
        "companions": {each.dataset: companion_files.held(each, judgement.measures) for each in beside},
    }
    path = target.lake.path(target.contract.dataset)
    written = unmoved.onto(kept, path, change.at) if isinstance(change, Rewrite) else kept
    return written.write.format("delta").option("userMetadata", json.dumps(info, default=str))


def receipt(lake: Lake, dataset: str, commit_id: str, before: int | None) -> Commit:
    """Read a publication back from the log.

    Args:
        lake: The tables' root.
        dataset: Name as `layer.table`; it has a table.
        commit_id: Which.
        before: The version before it was written, so far as it was; None when there was no table.

    Raises:
        PublicationUnknown: No commit bears that identifier; transient.
    """
    found = committed(lake, dataset, commit_id)
    if found is None:
        raise PublicationUnknown(dataset, commit_id)
    return replace(found, repeated=before is not None and found.version <= before)


def committed(lake: Lake, dataset: str, commit_id: str) -> Commit | None:
    """Look for a publication in a table's log; None when no commit bears that identifier.

    Args:
        lake: The tables' root.
        dataset: Name as `layer.table`, also of a member.
        commit_id: Which.
    """
    table = lake.caught_up(dataset)
    for version, entry in lake.commits(table) if table is not None else []:
        info = parse(entry.get("userMetadata"))
        if info is not None and info["commit_id"] == commit_id:
            return Commit(dataset=dataset, version=version, entries=entries_of(dataset, version, info), info=info)
    return None
