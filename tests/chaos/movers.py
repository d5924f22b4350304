"""What moves rows beside the publications of datasets: loads that land them, copies for others, the rotation of a key.

Each is declared by how its source changes, by what is killed, and by what readers have to find once it is done.
"""

from __future__ import annotations

import grp
import json
import os
import random
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import ClassVar

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from assets import table_loads
from blogdata.cli.main import main
from blogdata.lake.lake import Lake
from blogdata.patterns.ingestion.readiness_marker import FLAG
from blogdata.services import config
from blogdata.services.config import Settings
from lineage import tables
from lineage.deployment import Deployment
from lineage.expected_ads import Row

HOURS = ("2026-01-05T10", "2026-01-05T11", "2026-01-05T12")
DAYS = ("2026-01-05", "2026-01-06", "2026-01-07")
DEVICES, USERS = "silver.devices", "silver.users_current"


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where what a mover needs is made.

    Args:
        folder: A new folder.
        database: Returns the address of an empty database.
        spark: Returns the address of a Spark Connect server.
    """

    folder: Path
    database: Callable[[], str]
    spark: Callable[[], str]


@dataclass(frozen=True, kw_only=True)
class Mover(ABC):
    """One that moves rows. The first value of a row is the part in which it appears.

    Args:
        home: Home of its deployment.
    """

    name: ClassVar[str]
    longest: ClassVar[int] = 150
    """It is killed at most so many milliseconds after it began."""
    appears: ClassVar[bool] = True
    """Whether readers find each part as it was before, or as it is in the source."""
    home: Path

    @classmethod
    @abstractmethod
    def made(cls, places: Places) -> Mover:
        """Make one whose source has rows; nothing is moved yet."""

    @abstractmethod
    def change(self, dice: random.Random) -> None:
        """Change the source as those do who write there."""

    @abstractmethod
    def work(self) -> None:
        """Move what there is to move; called in a process of its own."""

    @abstractmethod
    def wanted(self) -> Counter[Row]:
        """Count the rows that readers have to find, in the source."""

    @abstractmethod
    def found(self) -> Counter[Row]:
        """Count the rows that readers find."""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """The folder in which readers find them."""

    def problems(self) -> list[str]:
        """List what is wrong besides, once the work is done."""
        left = [path for path in self.folder.rglob(".*") if path.is_dir() or path.suffix == ".partial"]
        return [f"{path} was left" for path in left]

    @property
    def settings(self) -> Settings:
        """Settings of its deployment."""
        return config.load(overrides={"BLOGDATA_HOME": str(self.home)})


@dataclass(frozen=True, kw_only=True)
class Landing(Mover):
    """One that lands rows."""

    def problems(self) -> list[str]:
        """List folders that are not complete, too: nobody reads them."""
        folders = {file.parent for file in self.folder.rglob("*.json*")}
        open_ones = [folder for folder in sorted(folders) if not (folder / FLAG).exists()]
        return [*super().problems(), *(f"{folder} is not complete" for folder in open_ones)]


@dataclass(frozen=True, kw_only=True)
class ByWindows(Landing):
    """One that moves rows by windows.

    Args:
        windows: The windows that are moved, in order.
    """

    windows: Sequence[str] = HOURS

    @property
    def folder(self) -> Path:
        return self.settings.landing / "visits"


@dataclass(frozen=True, kw_only=True)
class DevicesTable(Landing):
    """Full Loader: today's rows of a table land as one delivery."""

    name = "devices_table"
    database: str

    @classmethod
    def made(cls, places: Places) -> Mover:
        database = places.database()
        home = tables.reading(Deployment.create(places.folder), database, devices="devices").settings.home
        with psycopg.connect(database, autocommit=True) as source:
            source.execute(tables.DEVICES)
            source.execute("INSERT INTO devices SELECT 'PC', n::text, n::text FROM generate_series(1, 5000) n")
        return cls(home=home, database=database)

    def change(self, dice: random.Random) -> None:
        first, of = dice.randint(10_000, 10**9), dice.randint(5, 50)
        with psycopg.connect(self.database) as source:
            source.execute("DELETE FROM devices WHERE version::int %% %s = 0", [of])
            source.execute("UPDATE devices SET full_name = full_name || '\"' WHERE version::int %% %s = 1", [of])
            query = "INSERT INTO devices SELECT 'Phone', 'ü' || n, n::text FROM generate_series(%s::int, %s) n"
            source.execute(query, [first, first + dice.randint(1, 300)])

    def work(self) -> None:
        table_loads.load(self.settings, table_loads.DEVICES)

    def wanted(self) -> Counter[Row]:
        with psycopg.connect(self.database) as source:
            return Counter(source.execute("SELECT '', type, full_name, version FROM devices").fetchall())

    def found(self) -> Counter[Row]:
        lines = (json.loads(line) for file in self.folder.glob("*/devices.json") for line in _lines(file))
        return Counter(("", line["type"], line["full_name"], line["version"]) for line in lines)

    @property
    def folder(self) -> Path:
        return self.settings.landing / "devices"


@dataclass(frozen=True, kw_only=True)
class Changes(ByWindows):
    """Incremental Loader by a delta column: new rows of each window land in a further file of that window."""

    delta: ClassVar[str]
    key: ClassVar[str]
    table: ClassVar[str]
    """What makes it."""
    minutes: ClassVar[Sequence[str]] = (":00:00", ":30:00", ":59:59.999999")
    """Ends of the times at which rows are written, added to those of a window."""
    files: ClassVar[str]
    database: str

    @classmethod
    def made(cls, places: Places) -> Mover:
        database = places.database()
        made = tables.reading(
            Deployment.create(places.folder), database, **{cls.name: cls.name}, since=cls.windows[0][:10]
        )
        with psycopg.connect(database, autocommit=True) as source:
            source.execute(cls.table)
            source.execute(f"CREATE INDEX ON {cls.name} ({cls.delta})")
        return cls(home=made.settings.home, database=database)

    def change(self, dice: random.Random) -> None:
        with psycopg.connect(self.database) as source:
            for _ in range(dice.randint(1, 3)):
                at = f"{dice.choice(type(self).windows)}{dice.choice(self.minutes)}+00"
                source.execute(
                    f"INSERT INTO {self.name} ({self.key}, {self.delta})"
                    " SELECT %s || n, %s FROM generate_series(1, %s) n",
                    [f"{dice.random()}-", at, dice.randint(1, 400)],
                )

    def work(self) -> None:
        table_loads.load_windows(self.settings, self.name, self.windows)

    def wanted(self) -> Counter[Row]:
        window = f"left(to_char({self.delta} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24'), {len(self.windows[0])})"
        with psycopg.connect(self.database) as source:
            return Counter(source.execute(f"SELECT {window}, {self.key} FROM {self.name}").fetchall())

    def found(self) -> Counter[Row]:
        lines = ((file, json.loads(line)) for file in self.folder.rglob(self.files) for line in _lines(file))
        return Counter((self._window(file.parent), line[self.key]) for file, line in lines)

    @staticmethod
    def _window(folder: Path) -> str:
        return "T".join(part.partition("=")[2] for part in folder.parts if part.startswith(("date=", "hour=")))


@dataclass(frozen=True, kw_only=True)
class LegacyVisits(Changes):
    """Visits of a table, by hours."""

    name = "legacy_visits"
    delta, key, files = "ingestion_time", "visit_id", "legacy_visits-*.jsonl"
    table = tables.LEGACY_VISITS


@dataclass(frozen=True, kw_only=True)
class ChangedUsers(Changes):
    """Changed users of a table, by days."""

    name = "users"
    delta, key, files = "updated_at", "id", "users_table-*.jsonl"
    table = tables.USERS
    minutes = tuple(f" {hour}{end}" for hour in ("00", "23") for end in Changes.minutes)
    windows: Sequence[str] = DAYS

    @property
    def folder(self) -> Path:
        return self.settings.landing / "users"


@dataclass(frozen=True, kw_only=True)
class ProviderVisits(ByWindows):
    """Incremental Loader by time partitions: a provider's files land in their hours."""

    name = "provider_visits"
    longest = 20
    source: Path

    @classmethod
    def made(cls, places: Places) -> Mover:
        source = places.folder / "provider"
        source.mkdir(parents=True)
        made = Deployment.create(places.folder / "home")
        file = made.settings.home / "blogdata.toml"
        file.write_text(f'{file.read_text()}\n[tables]\nprovider_visits = "{source}"\n')
        return cls(home=made.settings.home, source=source)

    def change(self, dice: random.Random) -> None:
        for _ in range(dice.randint(1, 8)):
            hour = dice.choice(HOURS)
            file = self.source / f"date={hour[:10]}" / f"hour={hour[11:]}" / f"part-{dice.randint(0, 20)}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{dice.random()}\n" for _ in range(dice.randint(1, 4000))))
            (file.parent / FLAG).touch()

    def work(self) -> None:
        table_loads.load_provided(self.settings, self.windows)

    def wanted(self) -> Counter[Row]:
        return self._rows(self.source, "")

    def found(self) -> Counter[Row]:
        return self._rows(self.folder, "provider_visits-")

    def _rows(self, folder: Path, prefix: str) -> Counter[Row]:
        files = [file for file in folder.rglob(f"{prefix}part-*") if not file.name.startswith(".")]
        parts = [(f"{file.parent.name}/{file.name.removeprefix(prefix)}", file) for file in files]
        return Counter((part, line) for part, file in parts for line in _lines(file))


@dataclass(frozen=True, kw_only=True)
class Copies(Mover):
    """Copies of tables in a folder outside of the home, by a command."""

    datasets: ClassVar[Sequence[str]]
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

    def _named(self) -> Sequence[str]:
        return str(self.outside), "--group", grp.getgrgid(os.getgid()).gr_name


@dataclass(frozen=True, kw_only=True)
class PassthroughReplicator(Copies):
    """`blogdata replicate` of reference data, byte for byte."""

    name = "passthrough_replicator"
    longest = 500
    datasets = (DEVICES,)

    def work(self) -> None:
        command(self.home, "replicate", *self._named(), "--dataset", *self.datasets)

    def _copy(self, dataset: str) -> DeltaTable | None:
        folder = self.outside / dataset.replace(".", "/")
        return DeltaTable(folder) if folder.exists() else None


@dataclass(frozen=True, kw_only=True)
class TransformationReplicator(PassthroughReplicator):
    """`blogdata replicate` of a table of persons, whose values are altered."""

    name = "transformation_replicator"
    longest = 5000
    datasets = (USERS,)


@dataclass(frozen=True, kw_only=True)
class RoleExport(Copies):
    """`blogdata export` of two tables for a role."""

    name = "role_export"
    longest = 6000
    datasets = (DEVICES, USERS)

    def work(self) -> None:
        command(self.home, "export", "engineer", *self._named())

    def _copy(self, dataset: str) -> Path | None:
        folder = self.outside / dataset / "current" / "rows"
        return folder if folder.exists() else None


def command(home: Path, *arguments: str) -> None:
    """Run a command as its process does."""
    os.environ["BLOGDATA_HOME"] = str(home)
    sys.argv = ["blogdata", *arguments]
    main()


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()
