"""Files of a companion table: written and audited before the commit of the main table, which lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from blogdata.publish import observed
from blogdata.publish.audit import AuditSpec
from blogdata.publish.observed import Place, Written
from blogdata.publish.probe import Probe
from blogdata.publish.target import Companion, Target
from blogdata.publish.write_faults import AuditFailed, NotDeclared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class CompanionRows:
    """Rows of a companion, written together with those of the main table."""

    of: Companion
    rows: DataFrame
    spec: AuditSpec


def place_of(rows: DataFrame, target: Target, table: DeltaTable) -> Place:
    """Return where the rows of a table are written."""
    path = target.lake.path(target.contract.dataset)
    return Place(
        spark=rows.sparkSession,
        table=table,
        path=path,
        files=target.lake.files(path),
        columns={column.name: column.type for column in target.contract.columns},
        partition=target.contract.partition_column,
    )


def refuse(dataset: str, written: Written, target: Target) -> None:
    """Refuse rows that are computed from a table of the lake that is not declared, or that violate an audit."""
    reached = {target.lake.dataset_at(path) for path in written.tables} - {None, *(target.may_read or ())}
    if reached and target.may_read is not None:
        raise NotDeclared(target.contract.dataset, str(min(reached, key=str)))
    if written.judgement.violations:
        raise AuditFailed(dataset, written.judgement.violations)


def held(companion: CompanionRows, target: Target, measured: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Write and judge the rows of a companion; without any in the main table's files, nothing is written.

    Returns:
        What the main table's commit tells of it: `info` (commit metadata), `added` (files) and `partitions`.
    """
    of, dataset, probe = companion.of, companion.of.contract.dataset, Probe(target.probe, "companion.")
    here = {partition: int(figures[of.kept_measure]) for partition, figures in measured.items()}
    spec = replace(companion.spec, expected={partition: {"accounted": rows} for partition, rows in here.items()})
    probe.reached("opened")
    if any(here.values()):
        table = target.lake.table(dataset)
        assert table is not None, f"{dataset} has no table"
        place = place_of(companion.rows, replace(target, contract=of.contract), table)
        written = observed.write(companion.rows, spec, place)
    else:
        written = observed.nothing(spec)
    probe.reached("written")
    refuse(dataset, written, target)
    probe.reached("audited")
    accounts = {
        partition: {"rows_in": counted, "reasons": {of.dropped_reason: counted - here[partition]}}
        for partition, figures in measured.items()
        for counted in [int(figures[of.counted_measure])]
    }
    info = {**spec.info, **written.figures, "accounts": accounts}
    return {"info": info, "added": [file.listed() for file in written.files], "partitions": list(spec.partitions)}
