"""Copies of tables for others, as what is killed: readers have a whole copy, the one before or the new one."""

from __future__ import annotations

import grp
import os
import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from blogdata.lake.lake import Lake
from blogdata.operations.export import write
from blogdata.operations.replicate import READER, replicate
from blogdata.services import exports
from blogdata.services.copy_settings import Export
from chaos.movers import Mover, Places
from lineage.deployment import Deployment
from lineage.expected_ads import Row
from resources.spark import SparkResource

DEVICES, USERS = "silver.devices", "silver.users_current"


@dataclass(frozen=True, kw_only=True)
class Copies(Mover):
    """Copies of tables in a folder outside of the home, by a job."""

    datasets: ClassVar[Sequence[str]]
    reader: ClassVar[str] = READER
    outside: Path

    @classmethod
    def made(cls, places: Places) -> Mover:
        needs_spark = USERS in cls.datasets
        made = Deployment.create(places.folder / "home", places.spark() if needs_spark else None)
        made.settings.lake.mkdir(exist_ok=True)
        copies = cls(home=made.settings.home, outside=places.folder / "outside")
        copies.change(random.Random(0))
        return copies

    def change(self, dice: random.Random) -> None:
        first = dice.randint(1, 10**9)
        numbers = range(first, first + dice.randint(1, 500))
        made = {DEVICES: self._devices(numbers), USERS: self._users(numbers, dice)}
        for dataset in self.datasets:
            path = Lake(root=str(self.settings.lake)).path(dataset)
            write_deltalake(path, made[dataset], mode="append")
            table = DeltaTable(path)
            if dice.random() < 0.3:
                table.delete(f"occurrences % {dice.randint(2, 9)} = 0")
            if dice.random() < 0.3:
                table.optimize.compact()
            if dice.random() < 0.3:
                table.create_checkpoint()

    @staticmethod
    def _devices(numbers: Sequence[int]) -> pa.Table:
        names = [f"device {number}" for number in numbers]
        return pa.table({"device_type": names, "full_name": names, "occurrences": pa.array(numbers, pa.int64())})

    @staticmethod
    def _users(numbers: Sequence[int], dice: random.Random) -> pa.Table:
        begin = datetime(2026, 1, 5, 8, tzinfo=timezone.utc)
        return pa.table(
            {
                "user_id": [f"user {number % 7}" for number in numbers],
                "registered_datetime": pa.array([begin] * len(numbers), pa.timestamp("us", "UTC")),
                "changed_on": [f"2026-01-{dice.randint(1, 31):02}" for _ in numbers],
                "occurrences": pa.array(numbers, pa.int64()),
            }
        )

    def wanted(self) -> Counter[Row]:
        lake = Lake(root=str(self.settings.lake))
        return Counter(row for name in self.datasets for row in self._rows(name, DeltaTable(lake.path(name))))

    def found(self) -> Counter[Row]:
        return Counter(row for name in self.datasets for row in self._rows(name, self._copy(name)))

    @abstractmethod
    def _copy(self, dataset: str) -> DeltaTable | Path | None:
        """Return where readers find a copy; None: there is none."""

    def _rows(self, dataset: str, at: DeltaTable | Path | None) -> Iterator[Row]:
        if at is None:
            return
        columns = (
            ["device_type", "full_name"] if dataset == DEVICES else ["user_id", "changed_on", "registered_datetime"]
        )
        names = [*columns, "occurrences"]
        read = pq.read_table(at, columns=names) if isinstance(at, Path) else at.to_pyarrow_table(columns=names)
        # Whose row it is, is the first row that is his: names are hashed.
        firsts: dict[str, int] = {}
        for row in sorted(read.to_pylist(), key=lambda row: int(row["occurrences"])):
            whose = firsts.setdefault(row.pop("user_id", ""), row["occurrences"]) if dataset == USERS else ""
            yield dataset, whose, *(str(value)[:10] if isinstance(value, datetime) else value for value in row.values())

    @property
    def folder(self) -> Path:
        return self.outside

    def _export(self) -> Export:
        return Export(role=self.reader, folder=self.outside, group=grp.getgrgid(os.getgid()).gr_name)


@dataclass(frozen=True, kw_only=True)
class PassthroughReplicator(Copies):
    """The job `replicate` of reference data, byte for byte."""

    name = "passthrough_replicator"
    longest = 500
    datasets = (DEVICES,)

    def work(self) -> None:
        with exports.alone(self.settings):
            replicate(self.settings, self._export(), self.datasets, SparkResource(home=str(self.home)).guard)

    def _copy(self, dataset: str) -> DeltaTable | None:
        folder = self.outside / dataset.replace(".", "/")
        return DeltaTable(folder) if folder.exists() else None


@dataclass(frozen=True, kw_only=True)
class TransformationReplicator(PassthroughReplicator):
    """The job `replicate` of a table of persons, whose values are altered."""

    name = "transformation_replicator"
    longest = 5000
    datasets = (USERS,)


@dataclass(frozen=True, kw_only=True)
class RoleExport(Copies):
    """The job `export` of two tables for a role."""

    name = "role_export"
    reader = "engineer"
    longest = 6000
    datasets = (DEVICES, USERS)

    def work(self) -> None:
        with exports.alone(self.settings):
            write(self.settings, self._export(), SparkResource(home=str(self.home)).guard)

    def _copy(self, dataset: str) -> Path | None:
        folder = self.outside / dataset / "current" / "rows"
        return folder if folder.exists() else None
