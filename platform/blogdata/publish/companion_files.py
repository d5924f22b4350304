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

from blogdata.publish import kept_rows
from blogdata.publish.audit import AuditSpec, Judgement, judge
from blogdata.publish.target import Companion, Engine
from blogdata.publish.write_faults import AuditFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class CompanionRows:
    """Rows of a companion, written together with those of the main table."""

    of: Companion
    path: str
    rows: DataFrame
    spec: AuditSpec


@contextmanager
def registered_views(companions: Sequence[CompanionRows], options: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Register rows as views for the engine, which writes them within the open transaction of the main table."""
    views = {f"companion_{uuid.uuid4().hex}": each for each in companions}
    for view, each in views.items():
        each.rows.createOrReplaceTempView(view)
    try:
        described = [
            {
                "view": view,
                "path": each.path,
                "above": each.of.counted_measure,
                "kept": each.of.kept_measure,
                "otherwise": each.of.dropped_reason,
                "audit": each.spec.as_json(),
                "options": dict(options),
            }
            for view, each in views.items()
        ]
        yield {"companions": json.dumps(described)} if described else {}
    finally:
        for view, each in views.items():
            each.rows.sparkSession.catalog.dropTempView(view)


def write_unlogged(companion: CompanionRows, measured: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Audit a checkpoint of rows and write it into a folder no log names, where Spark may not load the engine.

    Returns:
        The same keys as from the engine: `info` (commit metadata), `added` (files) and `partitions`.
    """
    of, dataset = companion.of, companion.of.contract.dataset
    here = {partition: int(figures[of.kept_measure]) for partition, figures in measured.items()}
    spec = replace(companion.spec, expected={partition: {"accounted": rows} for partition, rows in here.items()})
    if any(here.values()):
        with kept_rows.computed(companion.rows, Engine.CHECKPOINT) as rows:
            judgement = _judged(rows, spec, dataset)
            added = _written(rows, companion.path, spec.partition_column)
    else:
        judgement, added = _judged(companion.rows.limit(0), spec, dataset), []
    accounts = {
        partition: {
            "rows_in": counted,
            "reasons": {of.dropped_reason: counted - here[partition]},
        }
        for partition, figures in measured.items()
        for counted in [int(figures[of.counted_measure])]
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
