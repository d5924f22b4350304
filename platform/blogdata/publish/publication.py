"""One audited commit: files are written below the table, and become a part of it when they have passed their audits."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from blogdata.errors.remedies import Remedy, Run
from blogdata.lake import arrow
from blogdata.lake.actions import again
from blogdata.lake.commit import Commit, Execution, entries_of, parse
from blogdata.lake.committer import Mark, OpenCommit, Whole
from blogdata.lake.lake import Lake
from blogdata.lake.reads import rows_of_files
from blogdata.publish import companion_files, observed
from blogdata.publish import refused as refused_batches
from blogdata.publish.audit import AuditSpec, guard_of, specify
from blogdata.publish.changes import AppendBatch, Change, Exchange, Extend, Restore, Rewrite
from blogdata.publish.companion_files import CompanionRows, place_of, refuse
from blogdata.publish.observed import Written
from blogdata.publish.probe import Probe
from blogdata.publish.schema import Failed
from blogdata.publish.target import Companion, Provenance, Target
from blogdata.publish.write_faults import AuditFailed, PublicationUnknown, translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write(
    rows: DataFrame,
    target: Target,
    change: Change,
    partitions: Sequence[str],
    provenance: Provenance,
    companions: Sequence[Companion] = (),
) -> Commit:
    """Change a table, audited, in one commit."""
    contract, lake = target.contract, target.lake
    commit_id = (
        change.commit_id(contract.dataset)
        if isinstance(change, AppendBatch)
        else commit_id_of(target, partitions, provenance.execution)
    )
    info = _info(target, commit_id, change, provenance, time.time())
    spec = specify(
        contract,
        partitions,
        provenance.accounts,
        info,
        expected=provenance.expected,
        files=provenance.files,
        lifted=target.lifted,
        besides=target.audits,
    )
    before = lake.version(contract.dataset)
    try:
        with translated(contract.dataset, partitions):
            companion_rows = [_companion_rows(companion, target, partitions, info) for companion in companions]
            _write(rows, target, spec, change, commit_id, companion_rows)
    except AuditFailed as failed:
        if failed.dataset == contract.dataset and not isinstance(change, Rewrite):
            refused_batches.keep(rows, target, failed)
        _name_guard(failed, target)
        raise
    return receipt(lake, contract.dataset, commit_id, before)


def _name_guard(failed: AuditFailed, target: Target) -> None:
    """Say how to publish all the same, if nothing failed but one audit."""
    rules = {item.rule for item in failed.violations}
    audits = (*target.contract.audits, *target.audits)
    if len(rules) == 1 and rules <= {audit.name for audit in audits if audit.failed is not Failed.FORBIDS}:
        anyway = Run(accept=guard_of(target.contract.dataset, *rules))
        failed.remedy = Remedy(failed.remedy, "; if it is a false alarm: ", anyway)


def _companion_rows(
    companion: Companion, target: Target, partitions: Sequence[str], info: Mapping[str, Any]
) -> CompanionRows:
    contract = companion.contract
    own = {**info, "commit_id": commit_id_of(replace(target, contract=contract), partitions), "landed": {}}
    # Its partitions are replaced, also those to which the main table only adds rows.
    own.pop("added", None)
    return CompanionRows(
        of=companion,
        rows=companion.frame.select(*[f"`{column.name}`" for column in contract.columns]),
        spec=specify(contract, partitions, {}, own),
    )


def commit_id_of(target: Target, partitions: Sequence[str], execution: Execution | None = None) -> str:
    """Build the identifier of a publication from the dataset, the partitions (or the execution) and the run."""
    # A run may publish several batches with the same first and last partition; the hash of all keys differs.
    batch = hashlib.sha256(",".join(partitions).encode()).hexdigest()[:12]
    span = f"{partitions[0]}..{partitions[-1]}:{batch}" if partitions else "all"
    if execution is not None:
        # After a restoration the same run publishes the execution again; the version it builds on differs.
        what = "" if execution.restores is None else f" back to {execution.restores}"
        span = f"{execution.period} on {execution.onto}{what}"
    return f"{target.contract.dataset}/{span}/{target.run.run_id}"


def _info(target: Target, commit_id: str, change: Change, provenance: Provenance, started: float) -> dict[str, Any]:
    return {
        "commit_id": commit_id,
        **({"appended": asdict(change)} if isinstance(change, AppendBatch) else {}),
        "started_at": started,
        "inputs": dict(provenance.inputs),
        "landed": dict(provenance.landed),
        **({} if provenance.execution is None else {"execution": asdict(provenance.execution)}),
        **({"judged_by": dict(provenance.judged_by)} if provenance.judged_by else {}),
        **({"refreshed": provenance.refreshed} if provenance.refreshed else {}),
        **({"added": {key: asdict(one) for key, one in added.items()}} if (added := provenance.additions.told) else {}),
        "run": {name: value for name, value in asdict(target.run).items() if value != {}},
    }


def _write(
    rows: DataFrame,
    target: Target,
    spec: AuditSpec,
    change: Change,
    commit_id: str,
    companions: Sequence[CompanionRows],
) -> None:
    """Write rows as files, judge them, and make them a part of the table in one commit."""
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
    refuse(dataset, written, target)
    held = {
        each.of.contract.dataset: companion_files.held(each, target, written.judgement.measures) for each in companions
    }
    info = {**spec.info, **written.figures, **({"companions": held} if held else {})}
    probe.reached("audited")
    if isinstance(change, AppendBatch):
        begun.append(written.files, info)
    elif isinstance(change, Exchange | Restore):
        begun.exchange(old, written.files, info, reads=Whole.TABLE)
    else:
        partitions = spec.partitions if spec.partition_column else Whole.TABLE
        begun.replace(partitions, written.files, info, kept=change.kept if isinstance(change, Extend) else ())
    probe.reached("committed")


def _stored(
    rows: DataFrame, target: Target, spec: AuditSpec, change: Change, begun: OpenCommit
) -> tuple[Written, Sequence[Mapping[str, Any]]]:
    """Write and judge rows; those of a restoration are there. Also return the single files whose place they take."""
    place = place_of(rows, target, begun.table)
    if isinstance(change, Restore):
        files = begun.files(Whole.TABLE)
        then = arrow.rows_of(target.lake.at(target.contract.dataset, change.to).get_add_actions(flatten=True))
        now, wanted = {file["path"] for file in files}, {file["path"] for file in then}
        lacking = again(place.files, begun.table, [file for file in then if file["path"] not in now])
        return observed.judged(rows, spec, place, lacking), [file for file in files if file["path"] not in wanted]
    beside: list[DataFrame] = []
    old: list[Mapping[str, Any]] = []
    if isinstance(change, Extend):
        there = target.lake.read(place.spark, target.contract.dataset, begun.table.version(), partitions=change.kept)
        beside.append(there.select(*[f"`{name}`" for name in place.columns]))
    if isinstance(change, Exchange):
        left: list[Mapping[str, Any]] = []
        for file in begun.files(Whole.TABLE):
            (old if file["path"] in change.files else left).append(file)
        beside += [rows_of_files(place.spark, place.path, place.columns, left, place.partition)] if left else []
    return observed.write(rows, spec, place, beside=beside), old


def receipt(lake: Lake, dataset: str, commit_id: str, before: int | None) -> Commit:
    """Read a publication back from the log.

    Raises:
        PublicationUnknown: No commit has that identifier; transient.
    """
    found = committed(lake, dataset, commit_id)
    if found is None:
        raise PublicationUnknown(dataset, commit_id)
    return replace(found, repeated=before is not None and found.version <= before)


def committed(lake: Lake, dataset: str, commit_id: str) -> Commit | None:
    """Find a publication in a table's log; None if no commit has that identifier."""
    table = lake.caught_up(dataset)
    for version, entry in lake.commits(table) if table is not None else []:
        info = parse(entry.get("userMetadata"))
        if info is not None and info["commit_id"] == commit_id:
            return Commit(dataset=dataset, version=version, entries=entries_of(dataset, version, info), info=info)
    return None
