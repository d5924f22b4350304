"""Files of a companion table: written and audited before the commit of the main table, which lists them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable

from publish import kept_rows
from publish.audit import AuditSpec, Judgement, judge
from publish.write_faults import AuditFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Rows of a companion, written together with those of the main table.

    Args:
        path: Address of the companion's table, which exists.
        rows: The rows, with the columns of the contract.
        spec: The audits of the rows.
        above: Measure of the main table: number of rows that the companion accounts for.
        kept: Measure of the main table: how many of these rows the companion keeps.
        otherwise: Reason for the rows that it does not keep.
    """

    path: str
    rows: DataFrame
    spec: AuditSpec
    above: str
    kept: str
    otherwise: str

    @property
    def dataset(self) -> str:
        """Name as `layer.table`."""
        return str(self.spec.info["dataset"])


@contextmanager
def offered(beside: Sequence[Beside], options: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Register rows as views for the engine, which writes them within the open transaction of the main table.

    Args:
        beside: The rows.
        options: Writer options by which their partitions are replaced.

    Yields:
        Options for the writer of the main table.
    """
    views = {f"companion_{uuid.uuid4().hex}": each for each in beside}
    for view, each in views.items():
        each.rows.createOrReplaceTempView(view)
    try:
        told = [
            {
                "view": view,
                "path": each.path,
                "above": each.above,
                "kept": each.kept,
                "otherwise": each.otherwise,
                "audit": each.spec.as_json(),
                "options": dict(options),
            }
            for view, each in views.items()
        ]
        yield {"companions": json.dumps(told)} if told else {}
    finally:
        for view, each in views.items():
            each.rows.sparkSession.catalog.dropTempView(view)


def held(each: Beside, measured: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Audit a checkpoint of rows and write it into a folder no log names, where Spark may not load the engine.

    Args:
        each: The rows.
        measured: Measures of the main table's batch, by partition.

    Returns:
        The same keys as from the engine: `info` (commit metadata), `added` (files) and `partitions`.

    Raises:
        AuditFailed: The rows broke the contract, or their number differs from the main table's count.
    """
    here = {partition: int(figures[each.kept]) for partition, figures in measured.items()}
    spec = replace(each.spec, expected={partition: {"accounted": rows} for partition, rows in here.items()})
    if any(here.values()):
        with kept_rows.computed(each.rows) as rows:
            judgement = _judged(rows, spec, each.dataset)
            added = _written(rows, each.path, spec.partition_column)
    else:
        judgement, added = _judged(each.rows.limit(0), spec, each.dataset), []
    accounts = {
        partition: {
            "rows_in": int(measured[partition][each.above]),
            "reasons": {each.otherwise: int(measured[partition][each.above]) - kept},
        }
        for partition, kept in here.items()
    }
    info = {
        **spec.info,
        "accounts": accounts,
        "measures": judgement.measures,
        "breakdowns": judgement.breakdowns,
        "column_lineage": {},
        "files": len(added),
        "bytes": sum(file["size"] for file in added),
    }
    return {"info": info, "added": added, "partitions": list(spec.partitions)}


def _judged(rows: DataFrame, spec: AuditSpec, dataset: str) -> Judgement:
    judgement = judge(rows, spec)
    if judgement.violations:
        raise AuditFailed(dataset, judgement.violations)
    return judgement


def _written(rows: DataFrame, path: str, column: str | None) -> list[dict[str, Any]]:
    folder = f"held/{uuid.uuid4().hex}"
    writer = rows.write.format("delta")
    (writer.partitionBy(column) if column else writer).save(f"{path}/{folder}")
    files = pa.table(DeltaTable(f"{path}/{folder}").get_add_actions(flatten=True)).to_pylist()
    return [
        {
            "path": f"{folder}/{file['path']}",
            "size": int(file["size_bytes"]),
            "partition_values": {column: str(file[f"partition.{column}"])} if column else {},
            "modification_time": int(file["modification_time"]),
            "stats": json.dumps({"numRecords": int(file["num_records"])}),
        }
        for file in files
    ]
