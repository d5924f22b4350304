"""One audited commit: writes rows in a transaction that stays open until the written files passed their audits.

Makes a rewrite fail if the table's rows have changed since they were read, where no engine holds the transaction.

A plain Delta write cannot name the version of the table it is for: its transaction begins long after the rows were
computed. But if a write reads the table it writes, Delta reads the version at which the transaction began, and later
commits conflict. So the write itself compares the rows of that version with those of the expected one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from blogdata.errors import ConfigurationError
from blogdata.errors.remedies import Remedy, Run
from blogdata.lake.commit import Commit, Execution, entries_of, parse
from blogdata.lake.lake import Lake
from blogdata.publish import companion_files, kept_rows
from blogdata.publish import refused as refused_batches
from blogdata.publish.audit import AuditSpec, guard_of, judge, specify
from blogdata.publish.changes import AppendBatch, Change, Extend, Overwrite, Rewrite
from blogdata.publish.companion_files import CompanionRows
from blogdata.publish.schema import Failed
from blogdata.publish.target import Companion, Engine, Provenance, Target
from blogdata.publish.write_faults import ROWS_MOVED, AuditFailed, ConstraintViolated, PublicationUnknown, translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter


def onto(rows: DataFrame, path: str, at: int) -> DataFrame:
    """Add a check to rows: writing them fails if the table has other rows than at a version.

    Returns:
        The same rows. Writing them fails unless each row of the table is in the same file, at the same position, as at
        that version. A commit in between that moves no row is harmless.
    """
    from pyspark.sql import functions as F

    spark = rows.sparkSession
    # Without a version: a named version would be read as it is, not as of the transaction.
    now = spark.read.format("delta").load(path)
    then = spark.read.format("delta").option("versionAsOf", at).load(path)
    # Delta has row positions only for tables with deletion vectors; for others the file alone identifies its rows.
    place = sorted({"file_path", "row_index"} & set(then.select("_metadata.*").columns))
    moved = _places(now, place).join(_places(then, place), on="places", how="left_anti")
    why = F.raise_error(F.lit(f"[{ROWS_MOVED}] the rows were computed from version {at}, the table has others now"))
    refusal = moved.select(*[why.cast(field.dataType).alias(field.name) for field in rows.schema])
    # A union, because Spark cannot skip one side of it on account of the other.
    return rows.unionByName(refusal)


def _places(table: DataFrame, place: Sequence[str]) -> DataFrame:
    """Compute one row that fingerprints where the rows of a table are, without any of their values."""
    from pyspark.sql import functions as F

    each = F.xxhash64(*[F.col(f"_metadata.{name}") for name in place])
    return table.agg(F.struct(F.count(F.lit(1)), F.coalesce(F.bit_xor(each), F.lit(0))).alias("places"))


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
    spec = _within_reach(spec, target)
    before = lake.version(contract.dataset)
    try:
        with translated(contract.dataset, partitions):
            companion_rows = [_companion_rows(companion, target, partitions, info) for companion in companions]
            _write(rows, target, spec, change, commit_id, companion_rows)
    except (AuditFailed, ConstraintViolated) as refused:
        failed = refused if isinstance(refused, AuditFailed) else _judged(rows, spec, change, refused)
        if failed.dataset == contract.dataset and isinstance(change, Overwrite | AppendBatch):
            refused_batches.keep(rows, target, failed)
        _name_guard(failed, target)
        if failed is refused:
            raise
        raise failed from refused
    return receipt(lake, contract.dataset, commit_id, before)


def _within_reach(spec: AuditSpec, target: Target) -> AuditSpec:
    return spec if target.may_read is None else replace(spec, lake=target.lake.root, may_read=tuple(target.may_read))


def _name_guard(failed: AuditFailed, target: Target) -> None:
    """Say how to publish all the same, if nothing failed but one audit."""
    rules = {item.rule for item in failed.violations}
    audits = (*target.contract.audits, *target.audits)
    if len(rules) == 1 and rules <= {audit.name for audit in audits if audit.failed is not Failed.FORBIDS}:
        anyway = Run(accept=guard_of(target.contract.dataset, *rules))
        failed.remedy = Remedy(failed.remedy, "; if it is a false alarm: ", anyway)


def _judged(rows: DataFrame, spec: AuditSpec, change: Change, refused: ConstraintViolated) -> AuditFailed:
    """List all violations of a batch; Delta names only the first bad row."""
    if isinstance(change, Extend):
        # The account is of whole partitions, and not all of their rows are new.
        spec = replace(spec, expected={})
    found = judge(rows, spec).violations if isinstance(change, Overwrite | AppendBatch) else ()
    if not found:
        raise refused
    return AuditFailed(str(spec.info["dataset"]), found)


def _companion_rows(
    companion: Companion, target: Target, partitions: Sequence[str], info: Mapping[str, Any]
) -> CompanionRows:
    contract = companion.contract
    own = {**info, "commit_id": commit_id_of(replace(target, contract=contract), partitions), "landed": {}}
    # Its partitions are replaced, also those to which the main table only adds rows.
    own.pop("added", None)
    return CompanionRows(
        of=companion,
        path=target.lake.path(contract.dataset),
        rows=companion.frame.select(*[f"`{column.name}`" for column in contract.columns]),
        spec=_within_reach(specify(contract, partitions, {}, own), target),
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
        "change": change.options(),
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
    path = target.lake.path(target.contract.dataset)
    # All batches of a stream share one transaction identifier, so Delta keeps one per stream, not one per batch.
    mode, writer_id, number = "overwrite", commit_id, 1
    if isinstance(change, AppendBatch):
        mode, writer_id, number = "append", change.writer_id(target.contract.dataset), change.batch
    options = {**change.options(), "txnAppId": writer_id, "txnVersion": str(number)}
    if target.engine is Engine.CHECKPOINT:
        if isinstance(change, Extend):
            raise ConfigurationError(
                what="without the engine's jar no rows can be added to a partition and audited with those it has",
                where=target.contract.dataset,
                next_step="replace the partition whole",
            )
        with kept_rows.computed(rows, Engine.CHECKPOINT) as kept:
            _audited(kept, target, spec, change, companions).mode(mode).options(**options).save(path)
        return
    writer = rows.write.format("audited-delta").mode(mode).option("audit", json.dumps(spec.as_json()))
    if target.probe:
        writer = writer.option("probe", target.probe)
    with companion_files.registered_views(companions, change.options()) as companion_options:
        writer.options(**options, **companion_options).save(path)


def _audited(
    rows: DataFrame, target: Target, spec: AuditSpec, change: Change, companions: Sequence[CompanionRows]
) -> DataFrameWriter:
    """Audit rows before they are written, where Spark may not load the engine."""
    judgement = judge(rows, spec)
    if judgement.violations:
        raise AuditFailed(target.contract.dataset, judgement.violations)
    info = {
        **spec.info,
        "measures": judgement.measures,
        "breakdowns": judgement.breakdowns,
        "column_lineage": {},
        "files": 0,
        "bytes": 0,
        "companions": {
            each.of.contract.dataset: companion_files.write_unlogged(each, judgement.measures) for each in companions
        },
    }
    path = target.lake.path(target.contract.dataset)
    written = onto(rows, path, change.at) if isinstance(change, Rewrite) else rows
    return written.write.format("delta").option("userMetadata", json.dumps(info, default=str))


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
