"""Writes rows as files below a table, and counts them while they are written.

What is counted stands directly below the write, so only tasks that succeeded count; the rows in the footers must agree.
Spark observes no distinct counts and no groups: these are counted in the written files, of few rows by the client.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyarrow.fs import FileSelector, FileSystem

from blogdata.contract.publication import WHOLE_TABLE, FileFigures
from blogdata.errors import TransientError
from blogdata.table.actions import DataFile, files_below, folder_of, folder_sql, indexed_columns, value_sql
from blogdata.table.audit import (
    FILE,
    AuditSpec,
    Counted,
    Judgement,
    aggregates,
    as_plain,
    count_breakdown,
    count_figures,
    count_files,
    count_repeated,
    weigh,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW = 500_000
"""Most rows whose keys and breakdowns are counted by the client; of more by Spark."""
MOST_BYTES = 256 * 2**20
"""Most bytes of landed lines that the client reads to count them; of more by Spark."""
_LINEAGE = "_lineage.json"
_PARQUET = "parquet."
_CONSTRAINT = "delta.constraints."
_GENERATED, _INVARIANT = "delta.generationExpression", "delta.invariants"
_UNOBSERVABLE = re.compile(r"\b(distinct|over\s*\(|filter\s*\(\s*where|rand|uuid)\b", re.IGNORECASE)
_COLUMN, _EXPLODED = re.compile(r"`?(\w+)`?"), re.compile(r"explode\((\w+)\)")
_ROWS, _OUTSIDE = "rows", "outside"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where files are written: a table that is open, and the file system whose root it is."""

    spark: SparkSession
    table: DeltaTable
    path: str
    files: FileSystem
    columns: Mapping[str, str]
    """Name to Spark SQL type of the columns that are written, in order."""
    partition: str | None


@dataclass(frozen=True, kw_only=True)
class Written:
    """Files below a table that are not yet part of it, what their rows are, and the tables they are computed from."""

    files: Sequence[DataFile]
    judgement: Judgement
    lineage: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[str] = ()

    @property
    def figures(self) -> dict[str, Any]:
        return {
            "measures": self.judgement.measures,
            "breakdowns": self.judgement.breakdowns,
            "files": len(self.files),
            "bytes": sum(file.size for file in self.files),
            "column_lineage": {},
            **self.lineage,
        }


def nothing(spec: AuditSpec) -> Written:
    none = Counted(figures={}, breakdowns={name: [] for name in spec.breakdowns})
    return Written(files=(), judgement=weigh(spec, none), lineage={"columns_read": []})


def write(rows: DataFrame, spec: AuditSpec, place: Place, *, beside: Sequence[DataFrame] = ()) -> Written:
    """Write rows below a table and judge them, together with rows `beside` them that the partitions have already."""
    from pyspark.sql import functions as F

    # With the table's own conditions: nobody else looks at them when files are committed.
    spec = replace(spec, violations={**enforced(place.table), **spec.violations})
    column = spec.partition_column
    only = spec.partitions[0] if column and len(spec.partitions) == 1 else None
    folder = f"data/{uuid.uuid4().hex}"
    if only is not None:
        # As Spark names it for several: readers of a manifest find the value in the path alone.
        folder = f"{folder}/{column}={folder_of(only)}"
    observed = not beside and not (column and only is None)
    observed = observed and not any(_UNOBSERVABLE.search(sql) for sql in aggregates(spec).values())
    figures = {_ROWS: "count(1)", **(aggregates(spec) if observed else {})}
    if only is not None:
        quoted = only.replace("\\", "\\\\").replace("'", "\\'")
        figures[_OUTSIDE] = f"max(case when not (`{column}` <=> '{quoted}') then string(coalesce(`{column}`, '')) end)"
    # As Delta's writer does; what does not fit ends the write.
    declared = rows.select(*[F.col(f"`{name}`").cast(kind).alias(name) for name, kind in place.columns.items()])
    counted = _written(declared, spec, place, folder, figures, only=only)
    files = _listed(place, folder, only)
    stored = sum(file.rows for file in files)
    if stored != int(counted.get(_ROWS) or 0):
        raise TransientError(
            what=f"the written files have {stored} rows, but {counted.get(_ROWS)} were counted when they were written",
            where=f"{place.path}/{folder}",
            next_step="nothing of this run was published; it is retried, or run it again",
        )
    # As in a query: a partition without rows has no figures, and a table without rows has those of no rows.
    by_partition = None
    if observed and (stored or (counted and not column)):
        by_partition = {only or WHOLE_TABLE: counted}
    elif observed and column:
        by_partition = {}
    undeclared = [outside] if (outside := counted.get(_OUTSIDE)) is not None else []
    full = _counted(files, spec, place, folder, only, by_partition, beside, undeclared)
    lineage = _lineage(place, folder)
    tables = lineage.pop("tables")
    return Written(files=files, judgement=weigh(spec, full), lineage=lineage, tables=tables)


def copy(rows: DataFrame, place: Place, *, most_rows: int) -> tuple[list[DataFile], int]:
    """Write rows of a table's files as other files, of at most so many rows each; return also how many were read."""
    folder = f"data/{uuid.uuid4().hex}"
    read = _written(rows, None, place, folder, {_ROWS: "count(1)"}, options={"maxRecordsPerFile": str(most_rows)})
    _lineage(place, folder)
    return _listed(place, folder, None), int(read.get(_ROWS) or 0)


def _listed(place: Place, folder: str, only: str | None) -> list[DataFile]:
    partition = (place.partition, only) if place.partition else None
    return files_below(place.files, folder, partition=partition, indexed=indexed_columns(place.table))


def enforced(table: DeltaTable) -> dict[str, str]:
    """Return the conditions of a table that Delta's own writer enforces: name to the SQL that counts broken rows."""
    properties = table.metadata().configuration.items()
    rules = {name.removeprefix(_CONSTRAINT): sql for name, sql in properties if name.startswith(_CONSTRAINT)}
    broken = {name: f"count_if(not coalesce({sql}, false))" for name, sql in rules.items()}
    for column in table.schema().fields:
        if not column.nullable:
            broken[f"not_null.{column.name}"] = f"count_if(`{column.name}` is null)"
        if _GENERATED in column.metadata:
            computed = column.metadata[_GENERATED]
            broken[f"generated.{column.name}"] = f"count_if(not (`{column.name}` <=> ({computed})))"
        if _INVARIANT in column.metadata:
            sql = json.loads(column.metadata[_INVARIANT])["expression"]["expression"]
            broken[f"invariant.{column.name}"] = f"count_if(not coalesce({sql}, false))"
    return broken


def _written(
    rows: DataFrame,
    spec: AuditSpec | None,
    place: Place,
    folder: str,
    figures: Mapping[str, str],
    *,
    only: str | None = None,
    options: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Write files into a folder, and return what was counted meanwhile; without a specification rows may be of any."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    column = place.partition
    by_folder = folder_sql(f"`{column}`") if column and only is None else ""
    observation = Observation(f"written_{uuid.uuid4().hex}")
    counted = rows.observe(observation, *[F.expr(sql).alias(name) for name, sql in figures.items()])
    configuration = place.table.metadata().configuration
    options = {
        **options,
        **{name: value or "" for name, value in configuration.items() if name.startswith(_PARQUET)},
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "mapreduce.fileoutputcommitter.algorithm.version": "2",
    }
    info = spec.info if spec else {}
    accounts, added = info.get("accounts") or {}, info.get("added") or {}
    taken_in = sum(account["rows_in"] for account in accounts.values()) if accounts else 2**63 - 1
    taken_in -= sum(share["rows_before"] for share in added.values() if not share["rewritten"])
    traced = counted.write.format("traced-parquet").mode("append").options(**options, of=str(taken_in))
    traced.options(partition=column or "", folder=by_folder).save(f"{place.path}/{folder}")
    return dict(observation.get)


def _lineage(place: Place, folder: str) -> dict[str, Any]:
    with place.files.open_input_stream(f"{folder}/{_LINEAGE}") as stream:
        lineage: dict[str, Any] = json.loads(stream.read())
    for info in place.files.get_file_info(FileSelector(folder)):
        if _LINEAGE in info.path:
            place.files.delete_file(info.path)
    return lineage


def _counted(
    files: Sequence[DataFile],
    spec: AuditSpec,
    place: Place,
    folder: str,
    only: str | None,
    figures: Mapping[str, Mapping[str, Any]] | None,
    beside: Sequence[DataFrame],
    undeclared: Sequence[str],
) -> Counted:
    """Count what could not be observed, by the client or by Spark, in the written files."""
    jobs: dict[str, Callable[[DataFrame], Any]] = {}
    has_rows = bool(files or beside)
    counts: dict[str, Any] = {"figures": figures or {}, "repeated": {}, "files": {}}
    breakdowns: dict[str, Any] = {} if has_rows else {name: [] for name in spec.breakdowns}
    lines = sum(size for landed in spec.files.values() for _, size in landed.values())
    is_few = sum(file.rows for file in files) <= FEW and lines <= MOST_BYTES
    if files and not beside and is_few:
        local = _Local(files, spec, place)
        counts["files"] = local.by_file()
        if (repeated := local.repeated()) is None:
            jobs["repeated"] = partial(count_repeated, spec=spec)
        else:
            counts["repeated"] = repeated
        breakdowns = {name: rows for name, by in spec.breakdowns.items() if (rows := local.breakdown(by)) is not None}
    elif has_rows:
        jobs |= {"repeated": partial(count_repeated, spec=spec), "files": partial(count_files, spec=spec)}
    if figures is None and (has_rows or not place.partition):
        jobs["figures"] = partial(count_figures, spec=spec)
    by = {name: columns for name, columns in spec.breakdowns.items() if name not in breakdowns}
    jobs |= {f"by {name}": partial(count_breakdown, spec=spec, columns=columns) for name, columns in by.items()}
    if jobs:
        frame = _read(place, folder, only)
        for present in beside:
            frame = frame.unionByName(present)
        # Independent queries on the same files: side by side they use the cores that a small batch leaves idle.
        with ThreadPoolExecutor(2) as threads:
            started = {name: threads.submit(job, frame) for name, job in jobs.items()}
            counts |= {name: job.result() for name, job in started.items()}
    breakdowns |= {name: counts.pop(f"by {name}") for name in by}
    return Counted(**counts, breakdowns=breakdowns, undeclared=undeclared)


def _read(place: Place, folder: str, only: str | None) -> DataFrame:
    from pyspark.sql import functions as F

    column = place.partition
    kinds = {name: "STRING" if name == column else kind for name, kind in place.columns.items()}
    listed = ", ".join(f"`{name}` {kind}" for name, kind in kinds.items() if name != column or only is None)
    rows = place.spark.read.schema(listed).parquet(f"{place.path}/{folder}")
    if not column:
        return rows
    value = F.lit(only) if only is not None else F.expr(value_sql(f"`{column}`"))
    return rows.withColumn(column, value.cast(place.columns[column])).select(*[f"`{name}`" for name in place.columns])


class _Local:
    """Counts by the client, of few rows: it reads the columns that it needs once."""

    def __init__(self, files: Sequence[DataFile], spec: AuditSpec, place: Place) -> None:
        self._spec, self._partition = spec, spec.partition_column
        known = set(place.columns) - {self._partition}
        wanted = {name for columns in spec.unique.values() for name in columns}
        wanted |= {_named(sql) for columns in spec.breakdowns.values() for sql in columns}
        wanted |= {FILE, "raw"} if spec.files else set()
        self._names = sorted(wanted & known)
        self._rows: Counter[str] = Counter()
        tables: dict[str, list[pa.Table]] = {}
        for file in files:
            value = file.partition_values.get(self._partition) if self._partition else WHOLE_TABLE
            stored = pq.ParquetFile(file.path, filesystem=place.files) if self._names else None
            tables.setdefault(str(value), []).append(stored.read(columns=self._names) if stored else pa.table({}))
            self._rows[str(value)] += file.rows
        self._tables = {key: pa.concat_tables(parts) for key, parts in tables.items()}

    def repeated(self) -> dict[str, dict[str, int]] | None:
        """Count the rows of each partition that are not the first with their key; None if Arrow cannot compare keys."""
        repeated: dict[str, dict[str, int]] = {}
        for rule, columns in self._spec.unique.items():
            names = [name for name in columns if name != self._partition]
            for key, table in self._tables.items():
                if any(pa.types.is_nested(table.schema.field(name).type) for name in names):
                    return None
                first = table.group_by(names).aggregate([]).num_rows if names else 1
                repeated.setdefault(rule, {})[key] = self._rows[key] - first
        return repeated

    def breakdown(self, columns: Sequence[str]) -> list[list[Any]] | None:
        """Count the rows of each partition by columns, one of which may be exploded; None for other expressions."""
        names = [_named(sql) for sql in columns]
        exploded = [name for name, sql in zip(names, columns, strict=True) if _EXPLODED.fullmatch(sql)]
        if not set(names) <= set(self._names) or len(exploded) > 1 or len(set(names)) < len(names):
            return None
        rows: list[list[Any]] = []
        for key, table in self._tables.items():
            cells = {name: table.column(name) for name in names}
            for name in exploded:
                lists = cells[name].combine_chunks()
                parents = pc.list_parent_indices(lists)
                cells = {other: column.take(parents) for other, column in cells.items() if other != name}
                cells[name] = pc.list_flatten(lists)
            counted = pa.table({name: cells[name] for name in names}).group_by(names).aggregate([([], "count_all")])
            prefix = [key] if self._partition else []
            for row in counted.select([*names, "count_all"]).to_pylist():
                rows.append([*prefix, *map(as_plain, row.values())])
        return rows

    def by_file(self) -> dict[str, dict[str, FileFigures]]:
        figures: dict[str, dict[str, FileFigures]] = {}
        for key, table in self._tables.items() if self._spec.files else ():
            raw = table.column("raw")
            lengths = pc.binary_length(raw) if pa.types.is_binary(raw.type) else pc.utf8_length(raw)
            sizes = pa.table({FILE: table.column(FILE), "size": pc.add(lengths, 1)})
            counted = sizes.group_by(FILE).aggregate([([], "count_all"), ("size", "sum")]).to_pylist()
            figures[key] = {row[FILE]: (row["count_all"], row["size_sum"] or 0) for row in counted}
        return figures


def _named(sql: str) -> str:
    """Return the column that an expression is, or explodes; empty for any other expression."""
    match = _COLUMN.fullmatch(sql) or _EXPLODED.fullmatch(sql)
    return match[1] if match else ""
