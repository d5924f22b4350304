"""Copies of a table for others, as what is killed: readers have a whole copy, the one before or the new one."""

from __future__ import annotations

import grp
import os
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from blogdata.lake.lake import Lake
from laws.movers import Mover, Places, command
from lineage.deployment import Deployment
from lineage.expected_ads import Row

DEVICES = "silver.devices"


@dataclass(frozen=True, kw_only=True)
class PassthroughReplicator(Mover):
    """`blogdata replicate` of reference data, byte for byte, into a folder outside of the home."""

    name = "passthrough_replicator"
    outside: Path

    @classmethod
    def made(cls, places: Places) -> Mover:
        made = Deployment.create(places.folder / "home")
        made.settings.lake.mkdir(exist_ok=True)
        copies = cls(home=made.settings.home, outside=places.folder / "outside")
        copies.change(random.Random(0))
        return copies

    def change(self, dice: random.Random) -> None:
        first = dice.randint(1, 10**9)
        numbers = range(first, first + dice.randint(1, 500))
        names = [f"device {number}" for number in numbers]
        rows = {"device_type": names, "full_name": names, "occurrences": pa.array(numbers, pa.int64())}
        path = Lake(root=str(self.settings.lake)).path(DEVICES)
        write_deltalake(path, pa.table(rows), mode="append")
        table = DeltaTable(path)
        if dice.random() < 0.3:
            table.delete(f"occurrences % {dice.randint(2, 9)} = 0")
        if dice.random() < 0.3:
            table.optimize.compact()
        if dice.random() < 0.3:
            table.create_checkpoint()

    def work(self) -> None:
        group = grp.getgrgid(os.getgid()).gr_name
        command(self.home, "replicate", str(self.outside), "--group", group, "--dataset", DEVICES)

    def wanted(self) -> Counter[Row]:
        return self._rows(DeltaTable(Lake(root=str(self.settings.lake)).path(DEVICES)))

    def found(self) -> Counter[Row]:
        copy = self.outside / DEVICES.replace(".", "/")
        return self._rows(DeltaTable(copy)) if copy.exists() else Counter()

    @staticmethod
    def _rows(table: DeltaTable) -> Counter[Row]:
        read = table.to_pyarrow_table(columns=["device_type", "full_name", "occurrences"])
        return Counter((DEVICES, *row.values()) for row in read.to_pylist())

    @property
    def folder(self) -> Path:
        return self.outside
