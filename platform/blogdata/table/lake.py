"""Datasets of a lake: read with Spark; counted, listed and versioned without a JVM (delta-rs)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from blogdata.contract.publication import Commit, entries_of, parse
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Query, Remedy, Run
from blogdata.table import arrow, companions, members
from blogdata.table.faults import typed_errors
from blogdata.table.members import Member
from blogdata.table.store import Store, plain, require_whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Keys = Collection[str] | None
"""Some partitions; None: all."""
Values = Mapping[str, Collection[str]]


_GLOB = re.compile(r"([\\*?{}\[\]])")
_MAPPING = "delta.columnMapping.mode"
_MOST_PARTITIONS, _MOST_FILES = 6, 32
"""Spark lists more files in a job of its own."""
_TABLE = "table:"
"""What the alias begins with by which column lineage knows the table of the files (`ColumnLineage`)."""


class DatasetMissing(PlatformError):
    """A dataset was read that has never been published, or none of whose members is visible."""


@dataclass(frozen=True, kw_only=True)
class TableSlice:
    """A table opened at the version that is read, and the partitions that are read from it; None for all of it."""

    name: str
    table: DeltaTable
    partitions: frozenset[str] | None


@dataclass(frozen=True, kw_only=True)
class Lake(Store):
    """The datasets of a store: tables, companions that follow a main table, and members behind a pointer."""

    def dataset_at(self, path: str) -> str | None:
        """Return the dataset whose rows are at a path (with or without `file:`); None outside the lake."""
        table, root = plain(path), plain(self.root).rstrip("/") + "/"
        within = table[len(root) :].split("/") if table.startswith(root) else []
        return members.dataset_of(".".join(within[:2])) if len(within) > 1 else None

    def caught_up(self, dataset: str) -> DeltaTable | None:
        """Open the table with a dataset's versions, without a JVM; a companion first follows its main table."""
        return companions.caught_up(self, dataset)

    def version(self, dataset: str) -> int | None:
        table = self.caught_up(dataset)
        return None if table is None else table.version()

    def row_counts(
        self, dataset: str, column: str | None, version: int | None = None, *, partitions: Keys = None
    ) -> dict[str, int]:
        """Count rows by partition ("" for a whole table), of `partitions` at least, from the log where possible."""
        counts: dict[str, int] = {}
        for part in self.parts(dataset, version, partitions=partitions):
            with typed_errors(dataset):
                counted = _counted(part.table, column)
            for key, rows in counted:
                if part.partitions is None or key in part.partitions:
                    counts[key] = counts.get(key, 0) + rows
        return counts

    def published(self, dataset: str) -> Iterator[Commit]:
        """Read the publications of a dataset back from its log, the newest first."""
        table = self.caught_up(dataset)
        for version, entry in self.commits(table) if table is not None else []:
            if (info := parse(entry.get("userMetadata"))) is not None:
                yield Commit(dataset=dataset, version=version, entries=entries_of(dataset, version, info), info=info)

    def parts(self, dataset: str, version: int | None = None, *, partitions: Keys = None) -> list[TableSlice]:
        """Open the tables with any of a dataset's partitions; fails if retention has removed rows of that version."""
        table = self.caught_up(dataset)
        if table is None:
            return []
        chosen = self._members(dataset, table, version)
        if chosen is not None:
            wanted = [part for part in chosen if partitions is None or not set(partitions).isdisjoint(part.partitions)]
            return [self.part(dataset, member) for member in wanted]
        if version is not None and version != table.version():
            table = self.at(dataset, version)
        return [TableSlice(name=dataset, table=table, partitions=None)]

    def part(self, dataset: str, member: Member) -> TableSlice:
        name = members.table_of(dataset, member.location)
        return TableSlice(name=name, table=self.at(name, member.version), partitions=_only(member))

    def is_readable(self, dataset: str, version: int) -> bool:
        """Check, without a JVM, whether every file of a version exists; an error as for :meth:`parts`."""
        try:
            parts = self.parts(dataset, version)
        except DeltaError:
            return False
        return all(self.is_whole(part.name, part.table.version()) for part in parts)

    def columns(
        self, dataset: str, names: Sequence[str], *, since: str | None = None, only: Values = MappingProxyType({})
    ) -> pa.Table:
        """Read some columns of a dataset's newest state, without a JVM; no rows if it was never published.

        Only partitions from the key `since` on, and of these only rows with one of the wanted values (`only`).
        """
        parts = []
        for part in self.parts(dataset):
            wanted = [_among(column, values) for column, values in only.items()]
            if part.partitions is not None or since is not None:
                (column,) = part.table.metadata().partition_columns
                wanted += [_among(column, part.partitions)] if part.partitions else []
                wanted += [] if since is None else [f'"{column}" >= {arrow.text(since)}']
            condition = " AND ".join(wanted)
            where = f" WHERE {condition}" if wanted else ""
            require_whole(part.table, dataset, condition or None)
            present = {field.name for field in part.table.schema().fields}
            listed = ", ".join(f'"{name}"' if name in present else f'NULL AS "{name}"' for name in names)
            # This reader leaves out rows that are marked as removed (deletion vectors).
            with typed_errors(dataset):
                rows = QueryBuilder().register("part", part.table).execute(f"SELECT {listed} FROM part{where}")
                # `pa.table` would import pandas, which takes longer than reading a small table.
                parts.append(pa.RecordBatchReader.from_stream(rows).read_all())
        return (
            pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({name: [] for name in names})
        )

    def read(
        self, spark: SparkSession, dataset: str, version: int | None = None, *, partitions: Keys = None
    ) -> DataFrame:
        """Read a dataset with Spark, at one version so that a step sees one state of its input.

        Some partitions, and a table without any, are read by their files, which delta-rs lists: Spark reads no log.
        """
        # A given version is opened directly, so that damage to later ones does not matter.
        try:
            table = self.caught_up(dataset) if version is None else self.at(dataset, version)
        except TableNotFoundError:
            table = None
        chosen = None if table is None else self._members(dataset, table, version)
        if table is None or chosen == ():
            raise DatasetMissing(
                what=f"{dataset} has no table yet",
                where=self.path(dataset),
                next_step=Remedy(f"materialize {dataset} first, or run: ", Run()),
            )
        if chosen is not None:
            return _of(self.read_members(spark, dataset, chosen), chosen[0].partition_column, partitions)
        column = next(iter(table.metadata().partition_columns), None)
        files = files_of(table, column, partitions)
        if version is not None and files is not None:
            return rows_of_files(spark, self.path(dataset), columns_of(table), files, column)
        reader = spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return _of(reader.load(self.path(dataset)), column, partitions)

    def read_members(
        self, spark: SparkSession, dataset: str, chosen: Sequence[Member], columns: Mapping[str, str] | None = None
    ) -> DataFrame:
        """Read some members as one frame, of some columns (name to type; None: all of any); null where one lacks it."""
        from pyspark.sql import functions as F

        wanted = columns or members.columns_of(chosen)
        frames = []
        for member in chosen:
            path = self.path(members.table_of(dataset, member.location))
            frame = spark.read.format("delta").option("versionAsOf", member.version).load(path)
            if _only(member) is not None:
                frame = frame.where(F.col(str(member.partition_column)).isin(*member.partitions))
            same = member.columns == wanted
            cells = {name: F.col(f"`{name}`") if name in member.columns else F.lit(None) for name in wanted}
            typed = {name: cells[name] if same else cells[name].cast(kind) for name, kind in wanted.items()}
            frames.append(frame.select(*[cell.alias(name) for name, cell in typed.items()]))
        return _union(frames)

    def _members(self, dataset: str, table: DeltaTable, version: int | None) -> tuple[Member, ...] | None:
        if not members.is_pointer(table):
            return None
        now = members.members_of(table if version is None else self.caught_up(dataset) or table)
        if version is None or version == now.version:
            return now.visible
        earlier = self.at(dataset, version)
        if not members.is_pointer(earlier):
            return None
        visible = members.members_of(earlier).visible
        removed = {member.location: member.removed_at for member in now.all if member.removed_at is not None}
        for member in visible:
            if member.location in removed:
                later = Query(sql=f"SELECT * FROM ops.publications WHERE dataset = '{dataset}' ORDER BY table_version")
                raise PlatformError(
                    what=f"rows of version {version} were removed by retention on {removed[member.location]:%Y-%m-%d}",
                    where=f"{dataset}, member {member.name}",
                    next_step=Remedy("choose a version of those published later: ", later),
                )
        return visible

    def versions(self, datasets: Iterable[str]) -> dict[str, int]:
        """Return the newest version of each dataset that exists; a main table and its companions agree."""
        return companions.agreeing(self, list(datasets))


def _of(rows: DataFrame, column: str | None, partitions: Keys) -> DataFrame:
    from pyspark.sql import functions as F

    return rows if column is None or partitions is None else rows.where(F.col(column).isin(*partitions))


def _among(column: str, values: Iterable[str]) -> str:
    return f'"{column}" IN ({", ".join(map(arrow.text, sorted(values)))})'


def _counted(table: DeltaTable, column: str | None) -> list[tuple[str, int]]:
    if marks_rows(table):
        # The log's row counts include rows that are marked as removed, so a query counts the others.
        by = "''" if column is None else f'"{column}"'
        counted = arrow.select(table, f"SELECT {by} AS key, count(*) AS rows FROM t GROUP BY 1")
        return [(str(row["key"]), int(row["rows"])) for row in counted]
    key = [] if column is None else [f"partition.{column}"]
    actions = arrow.rows_of(table.get_add_actions(flatten=True), ["num_records", *key])
    return [
        ("" if column is None else str(action[f"partition.{column}"]), int(action["num_records"])) for action in actions
    ]


def marks_rows(table: DeltaTable) -> bool:
    """Check whether rows of a table are marked as removed in place (deletion vectors)."""
    features = table.protocol().reader_features or []
    return "deletionVectors" in features and bool(table.deletion_vectors().read_all().num_rows)


def _only(member: Member) -> frozenset[str] | None:
    return frozenset(member.partitions) if member.frozen else None


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    # A balanced tree: a chain would be as deep as the number of members, and Spark refuses very deep plans.
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return _union(frames[:half]).union(_union(frames[half:]))


@dataclass(frozen=True, kw_only=True)
class Stored:
    lake: Lake
    dataset: str
    version: int
    partitions: Sequence[str]


def files_of(table: DeltaTable, column: str | None, partitions: Collection[str] | None) -> list[dict[str, Any]] | None:
    """List the files of some partitions (None: all) of a table; None if it should be read by its log.

    Those are tables with mapped columns or deletion vectors, and many partitions: each would be a part of the plan.
    """
    plain = (table.metadata().configuration.get(_MAPPING) or "none").lower() == "none"
    if not plain or "deletionVectors" in (table.protocol().reader_features or []):
        return None
    if column is not None and (partitions is None or len(partitions) > _MOST_PARTITIONS):
        return None
    files = arrow.rows_of(table.get_add_actions(flatten=True))
    chosen = [file for file in files if column is None or str(file[f"partition.{column}"]) in (partitions or ())]
    return chosen if len(chosen) <= _MOST_FILES else None


def rows_of_files(
    spark: SparkSession,
    path: str,
    columns: Mapping[str, str],
    files: Sequence[Mapping[str, Any]],
    partition: str | None,
) -> DataFrame:
    """Read files of the table at a path, as the log lists them; a column that a file lacks is null.

    Not for files with deletion vectors or mapped columns: removed rows would return, columns would be empty.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    inner = ", ".join(f"`{name}` {kind}" for name, kind in columns.items() if name != partition)
    of: dict[str | None, list[str]] = {}
    for file in files:
        of.setdefault(file[f"partition.{partition}"] if partition else None, []).append(file["path"])
    frames = []
    for value, paths in of.items():
        named = [f"{path}/" + _GLOB.sub(r"\\\1", unquote(file)) for file in paths]
        rows = spark.read.schema(inner).parquet(*named)
        if partition:
            rows = rows.withColumn(partition, F.lit(value).cast(columns[partition]))
            rows = rows.select(*[f"`{name}`" for name in columns])
        frames.append(rows)
    if not frames:
        listed = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
        frames.append(spark.createDataFrame([], listed))
    return reduce(DataFrame.unionByName, frames).alias(f"{_TABLE}{path}")


def columns_of(table: DeltaTable) -> dict[str, str]:
    """Return all columns of a table, name to Spark SQL type, in order: a contract may know fewer."""
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    return {column.name: column.dataType.simpleString() for column in schema.fields}
