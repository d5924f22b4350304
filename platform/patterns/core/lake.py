"""Where tables live, and what can be known about them without a JVM (delta-rs)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileType, PyFileSystem

from patterns.core import companions
from patterns.core.errors import PlatformError
from patterns.core.store_faults import store_faults

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DatasetMissing(PlatformError):
    """A dataset was read that has never been published."""


@dataclass(frozen=True, kw_only=True)
class Lake:
    """A folder or bucket of Delta tables, `<root>/<layer>/<table>`.

    Args:
        root: Absolute path or object store address.
        storage_options: Credentials and endpoints for readers without a JVM.
    """

    root: str
    storage_options: Mapping[str, str] = field(default_factory=dict)

    def path(self, dataset: str) -> str:
        """Give the address of a dataset's table."""
        return f"{self.root}/{dataset.replace('.', '/', 1)}"

    def dataset_at(self, path: str) -> str | None:
        """Give the dataset whose table is at a path (with or without `file:`), or None when outside the lake."""
        plain = _plain(path)
        root = _plain(self.root).rstrip("/") + "/"
        return plain[len(root) :].replace("/", ".", 1) if plain.startswith(root) else None

    def table(self, dataset: str) -> DeltaTable | None:
        """Open a table's log without a JVM; None when it does not exist yet.

        A table that appears with another one shows what that one's newest commit says of it.
        """
        options = dict(self.storage_options)
        if not DeltaTable.is_deltatable(self.path(dataset), storage_options=options):
            return None
        try:
            with store_faults(dataset):
                table = DeltaTable(self.path(dataset), storage_options=options)
        except TableNotFoundError:
            return None
        return companions.follow(self, dataset, table)

    def version(self, dataset: str) -> int | None:
        """Give the newest version of a table; None when it does not exist."""
        table = self.table(dataset)
        return None if table is None else table.version()

    def rows(self, dataset: str, column: str | None, version: int | None = None) -> dict[str, int]:
        """Count the rows of each partition from the log alone.

        Args:
            dataset: Name as `layer.table`.
            column: Partition column; None counts the whole table under the key "".
            version: Table version; None for the newest.

        Returns:
            Partition value to number of rows.
        """
        table = self.table(dataset)
        if table is None:
            return {}
        if version is not None:
            table.load_as_version(version)
        counts: dict[str, int] = {}
        for action in pa.table(table.get_add_actions(flatten=True)).to_pylist():
            key = "" if column is None else str(action[f"partition.{column}"])
            removed = action.get("deletionVector.cardinality") or 0
            counts[key] = counts.get(key, 0) + int(action["num_records"]) - int(removed)
        return counts

    def batches(self, dataset: str, version: int, column: str, key: str) -> Iterator[pa.RecordBatch]:
        """Read one partition of a dataset at a version, a batch of rows after the other, without a JVM."""
        table = self.table(dataset)
        if table is not None:
            table.load_as_version(version)
            yield from table.to_pyarrow_dataset().to_batches(filter=pc.field(column) == key)

    def missing_files(self, dataset: str, version: int) -> list[str]:
        """Give the files of a version that are not in the store any more, without a JVM.

        Args:
            dataset: Name as `layer.table`; it has a table.
            version: A version its log still has.

        Raises:
            DeltaError: The log does not have that version any more.
        """
        options = dict(self.storage_options)
        table = DeltaTable(self.path(dataset), version=version, storage_options=options)
        paths = [str(action["path"]) for action in pa.table(table.get_add_actions(flatten=True)).to_pylist()]
        store = PyFileSystem(DeltaStorageHandler(self.path(dataset), options))
        found = store.get_file_info(paths) if paths else []
        return [path for path, info in zip(paths, found, strict=True) if info.type == FileType.NotFound]

    def read(self, spark: SparkSession, dataset: str, version: int | None = None) -> DataFrame:
        """Read a dataset with Spark, at one version so that a step sees one state of its input.

        Raises:
            DatasetMissing: The dataset has never been published.
        """
        if version is None and self.table(dataset) is None:
            raise DatasetMissing(
                what=f"{dataset} has no table yet",
                where=self.path(dataset),
                next_step=f"materialize {dataset} first, or run: blogdata run",
            )
        reader = spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(self.path(dataset))

    def versions(self, datasets: Iterable[str]) -> dict[str, int]:
        """Give versions of the datasets that exist: the newest ones, which agree where datasets appear together."""
        return companions.agreeing(self, list(datasets))


def _plain(path: str) -> str:
    without = path[len("file:") :] if path.startswith("file:") else path
    return "/" + without.lstrip("/") if path.startswith("file:") else without
