"""Loads of tables and of a provider's files, as what is killed: readers have each row of the source once."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import psycopg

from assets import table_loads
from blogdata.patterns.ingestion.readiness_marker import FLAG
from laws.movers import Mover, Places
from lineage import tables
from lineage.deployment import Deployment
from lineage.expected_ads import Row

HOURS = ("2026-01-05T10", "2026-01-05T11", "2026-01-05T12")
DAYS = ("2026-01-05", "2026-01-06", "2026-01-07")


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
    ends: ClassVar[Sequence[str]] = (":00:00", ":30:00", ":59:59.999999")
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
                at = f"{dice.choice(type(self).windows)}{dice.choice(self.ends)}+00"
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
    ends = tuple(f" {hour}{end}" for hour in ("00", "23") for end in Changes.ends)
    windows: Sequence[str] = DAYS

    @property
    def folder(self) -> Path:
        return self.settings.landing / "users"


@dataclass(frozen=True, kw_only=True)
class ProviderVisits(ByWindows):
    """Incremental Loader by time partitions: a provider's files land in their hours."""

    name = "provider_visits"
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


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()
