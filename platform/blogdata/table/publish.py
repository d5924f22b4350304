"""The one way to write: files are written below the table, and become a part of it when they have passed their audits.

Pattern: Audit-Write-Audit-Publish (:mod:`blogdata.patterns.quality.audit_write_audit_publish`).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from blogdata.contract.migrations import both, carried
from blogdata.contract.publication import Commit, Execution
from blogdata.contract.schema import Failed
from blogdata.errors import PlatformError, TransientError, foreign
from blogdata.errors.remedies import Remedy, Run
from blogdata.table import observed, tables
from blogdata.table import refused as refused_batches
from blogdata.table.audit import AuditSpec, guard_of, specify
from blogdata.table.committer import Mark, OpenCommit, Whole
from blogdata.table.faults import AuditFailed, NotDeclared, typed_errors
from blogdata.table.lake import Lake, rows_of_files
from blogdata.table.observed import Place, Written
from blogdata.table.target import AppendBatch, Change, Companion, Exchange, Extend, Probe, Provenance, Rewrite, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def publish(
    frame: DataFrame,
    target: Target,
    *,
    change: Change,
    partitions: Sequence[str],
    provenance: Provenance,
    companions: Sequence[Companion] = (),
) -> Commit:
    """Write a frame to a table, audited, in one commit; repeated calls of a run (or stream batch) change nothing.

    `partitions` is empty for a table that is written whole. If rows break the contract or the account, it is refused
    (:class:`AuditFailed`); if another run changed what it replaces, or is computed from, it is transient.
    """
    lake = target.lake
    contract = carried(target.contract, lake.caught_up(target.contract.dataset) if target.contract.migrations else None)
    target = replace(target, contract=contract)
    where = f"{contract.dataset} {partitions[0]}..{partitions[-1]}" if partitions else contract.dataset
    with typed_errors(where):
        for declared in (contract, *(companion.contract for companion in companions)):
            tables.enforce(frame.sparkSession, lake, declared)
        rows = both(frame, contract).select(*[f"`{column.name}`" for column in contract.columns])
    commit_id = commit_id_of(target, partitions, provenance.execution)
    if isinstance(change, AppendBatch):
        commit_id = change.commit_id(contract.dataset)
    info = _info(target, commit_id, change, provenance, time.time())
    spec = specify(
        contract,
        partitions,
        provenance.accounts,
        info,
        expected=provenance.expected,
        files=provenance.files,
        lifted=target.lifted,
    )
    before = lake.version(contract.dataset)
    try:
        with typed_errors(where):
            _write(rows, target, spec, change, commit_id, companions)
    except AuditFailed as failed:
        _name_guard(failed, target)
        raise
    return receipt(lake, contract.dataset, commit_id, before)


def _name_guard(failed: AuditFailed, target: Target) -> None:
    """Say how to publish all the same, if nothing failed but one audit."""
    rules = {item.rule for item in failed.violations}
    audits = target.contract.audits
    if len(rules) == 1 and rules <= {audit.name for audit in audits if audit.failed is not Failed.FORBIDS}:
        anyway = Run(accept=guard_of(target.contract.dataset, *rules))
        failed.remedy = Remedy(failed.remedy, "; if it is a false alarm: ", anyway)


def commit_id_of(target: Target, partitions: Sequence[str], execution: Execution | None = None) -> str:
    """Build the identifier of a publication from the dataset, the partitions (or the execution) and the run."""
    # A run may publish several batches with the same first and last partition; the hash of all keys differs.
    batch = hashlib.sha256(",".join(partitions).encode()).hexdigest()[:12]
    span = f"{partitions[0]}..{partitions[-1]}:{batch}" if partitions else "all"
    if execution is not None:
        # A run that was undone publishes the execution again; the version it builds on differs.
        span = f"{execution.period} on {execution.onto}"
    return f"{target.contract.dataset}/{span}/{target.run.run_id}"


def _info(target: Target, commit_id: str, change: Change, provenance: Provenance, started: float) -> dict[str, Any]:
    added = provenance.additions.all
    return {
        "commit_id": commit_id,
        **({"appended": asdict(change)} if isinstance(change, AppendBatch) else {}),
        "started_at": started,
        "inputs": dict(provenance.inputs),
        "landed": dict(provenance.landed),
        **({} if provenance.execution is None else {"execution": asdict(provenance.execution)}),
        **({"judged_by": dict(provenance.judged_by)} if provenance.judged_by else {}),
        **({"refreshed": provenance.refreshed} if provenance.refreshed else {}),
        **({"added": {key: asdict(part) for key, part in added.items()}} if added else {}),
        "run": {name: value for name, value in asdict(target.run).items() if value != {}},
    }


def _write(
    rows: DataFrame, target: Target, spec: AuditSpec, change: Change, commit_id: str, companions: Sequence[Companion]
) -> None:
    dataset, lake, probe = target.contract.dataset, target.lake, Probe(target.probe)
    # All batches of a stream share one writer, so the log keeps one mark per stream, not one per batch.
    mark, turn = Mark(writer=commit_id, batch=1), None
    if isinstance(change, AppendBatch):
        mark = Mark(writer=change.writer_id(dataset), batch=change.batch, lasts=True)
        turn = None if change.turn is None else Mark(writer=dataset, batch=change.turn, lasts=True)
    begun = OpenCommit(lake, dataset, mark, turn=turn)
    if begun.repeated:
        return
    if isinstance(change, Extend | Rewrite):
        begun.require(change.at)
    probe.reached("opened")
    written, old = _stored(rows, target, spec, change, begun)
    probe.reached("written")
    try:
        _refuse(dataset, written, target)
    except AuditFailed as failed:
        if not isinstance(change, Rewrite):
            try:
                refused_batches.keep(written.files, begun.table, lake, failed, spec.partitions)
            except (PlatformError, DeltaError, OSError) as error:
                failed.remedy = Remedy(failed.remedy, f"; the rows could not be kept: {foreign.unquoted(error)}")
        raise
    measures = written.judgement.measures
    held = {companion.contract.dataset: _held(companion, target, spec, measures) for companion in companions}
    info = {**spec.info, **written.figures, **({"companions": held} if held else {})}
    probe.reached("audited")
    if isinstance(change, AppendBatch):
        begun.append(written.files, info)
    elif isinstance(change, Exchange):
        begun.exchange(old, written.files, info, reads=Whole.TABLE)
    else:
        partitions = spec.partitions if spec.partition_column else Whole.TABLE
        begun.replace(partitions, written.files, info, kept=change.kept if isinstance(change, Extend) else ())
    probe.reached("committed")


def _refuse(dataset: str, written: Written, target: Target) -> None:
    """Refuse rows that are computed from a table of the lake that is not declared, or that violate an audit."""
    reached = {target.lake.dataset_at(path) for path in written.tables} - {None, *(target.may_read or ())}
    if reached and target.may_read is not None:
        stored = target.lake.files(target.lake.path(dataset))
        for file in written.files:
            stored.delete_file(file.path)
        raise NotDeclared(target.contract.dataset, str(min(reached, key=str)))
    if written.judgement.violations:
        raise AuditFailed(dataset, written.judgement.violations)


def _held(
    of: Companion, main: Target, main_spec: AuditSpec, measured: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Write and judge the rows of a companion; return what the main table's commit says of it."""
    target, dataset = replace(main, contract=of.contract), of.contract.dataset
    probe = Probe(target.probe, "companion.")
    kept = {partition: int(figures[of.kept_measure]) for partition, figures in measured.items()}
    # Its partitions are replaced, also those to which the main table only adds rows.
    info = {name: value for name, value in main_spec.info.items() if name not in ("added", "lifted")}
    info |= {"commit_id": commit_id_of(target, main_spec.partitions), "landed": {}}
    expected = {partition: {"accounted": rows} for partition, rows in kept.items()}
    spec = specify(of.contract, main_spec.partitions, {}, info, expected=expected)
    probe.reached("opened")
    if any(kept.values()):
        table = target.lake.table(dataset)
        assert table is not None, f"{dataset} has no table"
        rows = of.frame.select(*[f"`{column.name}`" for column in of.contract.columns])
        written = observed.write(rows, spec, place_of(rows, target, table))
    else:
        written = observed.nothing(spec)
    probe.reached("written")
    _refuse(dataset, written, main)
    probe.reached("audited")
    counted = {partition: int(figures[of.counted_measure]) for partition, figures in measured.items()}
    accounts = {
        partition: {"rows_in": rows, "reasons": {of.dropped_reason: rows - kept[partition]}}
        for partition, rows in counted.items()
    }
    info = {**spec.info, **written.figures, "accounts": accounts}
    return {"info": info, "added": [file.listed() for file in written.files], "partitions": list(spec.partitions)}


def _stored(
    rows: DataFrame, target: Target, spec: AuditSpec, change: Change, begun: OpenCommit
) -> tuple[Written, Sequence[Mapping[str, Any]]]:
    """Write and judge rows, and return the single files whose place they take."""
    place = place_of(rows, target, begun.table)
    beside: list[DataFrame] = []
    old: list[Mapping[str, Any]] = []
    if isinstance(change, Extend):
        kept = target.lake.read(place.spark, target.contract.dataset, begun.table.version(), partitions=change.kept)
        beside.append(kept.select(*[f"`{name}`" for name in place.columns]))
    if isinstance(change, Exchange):
        left: list[Mapping[str, Any]] = []
        for file in begun.files(Whole.TABLE):
            (old if file["path"] in change.files else left).append(file)
        beside += [rows_of_files(place.spark, place.path, place.columns, left, place.partition)] if left else []
    return observed.write(rows, spec, place, beside=beside), old


def place_of(rows: DataFrame, target: Target, table: DeltaTable) -> Place:
    path = target.lake.path(target.contract.dataset)
    return Place(
        spark=rows.sparkSession,
        table=table,
        path=path,
        files=target.lake.files(path),
        columns={column.name: column.type for column in target.contract.columns},
        partition=target.contract.partition_column,
    )


def receipt(lake: Lake, dataset: str, commit_id: str, before: int | None) -> Commit:
    """Read a publication back from the log."""
    commit = committed(lake, dataset, commit_id)
    if commit is None:
        raise TransientError(
            what=f"the write returned but no commit '{commit_id}' is in the log",
            where=dataset,
            next_step="run the step again: a batch that was published is not published twice",
        )
    return replace(commit, repeated=before is not None and commit.version <= before)


def committed(lake: Lake, dataset: str, commit_id: str) -> Commit | None:
    """Find a publication in a table's log; None if no commit has that identifier."""
    return next((commit for commit in lake.published(dataset) if commit.info["commit_id"] == commit_id), None)
