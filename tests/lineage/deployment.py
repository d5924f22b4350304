"""A deployment for one test: own home, landing zone and lake, on a shared Spark server."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any

import plans
from blogdata.cli.output import Outcome
from blogdata.cli.pipeline import Pipeline
from blogdata.contract.partitions import Grain, start_of
from blogdata.contract.publication import Entry
from blogdata.deliver.query import Query
from blogdata.ledger import ledger
from blogdata.ledger.events import EventLog
from blogdata.ledger.ledger import LedgerLine
from blogdata.operate import config, spark_attached
from blogdata.operate.config import Settings
from blogdata.planning.plan import ASKED, Plan, Planner, Window
from blogdata.planning.snapshot import Snapshot
from blogdata.runs.zone import zone_of
from blogdata.simulator import landing_zone as simulator
from blogdata.simulator.spec import SimulationSpec
from blogdata.simulator.truth import Truth
from blogdata.table import unneeded
from blogdata.table.lake import Lake
from quality.contracts import CONTRACTS, EVERY, GRAPH
from quality.keys import VISITOR_KEY
from resources.spark import SparkResource

OWN_SERVER = "[spark.conf]\n" + "".join(
    f"{json.dumps(name)} = {json.dumps(value)}\n"
    for name, value in {**plans.FOR_FEW_ROWS, **plans.COMPILED_ONCE}.items()
)
"""Settings of a deployment that starts a Spark server of its own, for minutes and few rows."""
SKETCH = ("gold.audience_hourly", "visitors")
COMMON_KEY = "visitors-of-all-tests-" * 3
"""Ids of visitors and buckets of users follow from a deployment's key: with one key, tables of two can be compared."""


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A landing zone, a lake and a way to run the platform on them in this process."""

    settings: Settings

    @classmethod
    def create(cls, home: Path, url: str | None = None) -> Deployment:
        home.mkdir(parents=True)
        spark = OWN_SERVER if url is None else f"[spark]\nremote = {json.dumps(url)}\n"
        (home / "blogdata.toml").write_text(spark, encoding="utf-8")
        share_key(home)
        return cls(settings=config.load(overrides={"BLOGDATA_HOME": str(home)}))

    @property
    def landing(self) -> Path:
        return self.settings.landing

    @property
    def lake(self) -> Lake:
        return Lake(root=str(self.settings.lake))

    @property
    def events(self) -> EventLog:
        return EventLog(self.lake)

    @contextmanager
    def session(self) -> Iterator[Any]:
        """Open a Spark session as a step does: an error names a server that was lost meanwhile."""
        with SparkResource(home=str(self.settings.home)).guard() as spark:
            yield spark

    def rest(self, dataset: str) -> None:
        """Replace the files of a table and remove the old ones, as maintenance does while nothing is published."""
        column, *_ = EVERY[dataset].statistics
        with self.session() as spark:
            # With an order, even a file that is alone is rewritten.
            spark.sql(f"OPTIMIZE delta.`{self.lake.path(dataset)}` ZORDER BY ({column})").collect()
        later = datetime.now(timezone.utc) + unneeded.READABLE + 2 * unneeded.MARGIN
        old = unneeded.data_files(self.lake, dataset, (), later)
        assert old
        unneeded.remove(old)

    def as_in_production(self) -> Deployment:
        """Plan as the platform does, instead of for few rows; the caller drops the session."""
        with self.session() as spark:
            plans.configure(spark, plans.AS_IN_PRODUCTION if "WHOLE_MATRIX" in os.environ else plans.ADAPTIVE)
        return self

    def close(self) -> None:
        """Leave a server of its own; the session on the tests' server is that of all deployments of a process."""
        if self.settings.spark.remote is None:
            spark_attached.drop(self.settings)

    def simulate(self, spec: SimulationSpec) -> Truth:
        """Fill the landing zone by simulation; return its truth."""
        return simulator.simulate(spec, self.landing)

    def folder(self, hour: str, table: str = "visits") -> Path:
        return self.landing / table / f"date={hour[:10]}" / f"hour={hour[11:]}"

    def land(self, hour: str, lines: Iterable[bytes], name: str = "visits.json", table: str = "visits") -> Path:
        """Put a file into an hour of arrival, and add the flag unless it exists."""
        return self._put(self.folder(hour, table), lines, name)

    def deliver(self, table: str, day: str, lines: Iterable[bytes], name: str = "delivered.json") -> Path:
        """Put a file into a day's delivery of users or devices, and add the flag unless it exists."""
        return self._put(self.landing / table / f"date={day}", lines, name)

    def _put(self, folder: Path, lines: Iterable[bytes], name: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / name
        file.write_bytes(b"".join(line + b"\n" for line in lines))
        (folder / "_SUCCESS").touch()
        return file

    def copy_hours(self, other: Deployment, hours: Sequence[str]) -> None:
        """Copy the reference data and some hours of arrival from another landing zone."""
        for table in ("users", "devices"):
            if (other.landing / table).is_dir():
                shutil.copytree(other.landing / table, self.landing / table, dirs_exist_ok=True)
        for table in ("visits", "ads"):
            for hour in hours if (other.landing / table).is_dir() else ():
                shutil.copytree(other.folder(hour, table), self.folder(hour, table))

    def run(
        self,
        *,
        select: Sequence[str] = (),
        for_: Sequence[str] = (),
        hours: tuple[str, str] | None = None,
        accept: str | None = None,
    ) -> Outcome:
        """Run as `blogdata run` does; `hours` are the first and last hour, or day, of a span to run again."""
        window = None
        if hours is not None:
            first, last = (start_of(key, Grain.HOUR if "T" in key else Grain.DAY) for key in hours)
            length = (Grain.HOUR if "T" in hours[1] else Grain.DAY).length
            window = Window(start=first, end=last + length)
        pipeline = Pipeline(self.settings, quiet=True, accept=accept)
        return pipeline.run(window=window, select=select, for_=for_)

    def replay(self, dataset: str, *partitions: str) -> Outcome:
        """Replay as the job does."""
        plan = self.planner.plan_of_replay({dataset: dict.fromkeys(partitions, ASKED)})
        return Pipeline(self.settings, quiet=True).run_plan(plan)

    @property
    def planner(self) -> Planner:
        return Planner(graph=GRAPH, look=Snapshot(zone_of(self.settings), self.events))

    def outstanding(self) -> Plan:
        """List the tasks that `blogdata plan` shows."""
        return self.planner.outstanding()

    def published(self, dataset: str) -> dict[str, Entry]:
        return self.events.publications(dataset)

    def versions(self) -> dict[str, int]:
        return self.lake.versions([*CONTRACTS, "ops.events"])

    def rows(self, dataset: str, *columns: str) -> list[Any]:
        """Read a table without Spark: tuples of the requested columns, bare values for a single column."""
        table = self.lake.columns(dataset, columns).to_pydict()
        rows = list(zip(*(table[name] for name in columns), strict=True))
        return [row[0] for row in rows] if len(columns) == 1 else rows

    def contents(self) -> dict[str, list[str]]:
        """Return every row of every table, in an order independent of files."""
        return {name: self.contents_of(name) for name in CONTRACTS if self.lake.caught_up(name) is not None}

    def contents_of(self, dataset: str) -> list[str]:
        """Return every row of a table, in an order independent of files, without sketches: their bytes depend on it."""
        columns = [column.name for column in CONTRACTS[dataset].columns if (dataset, column.name) != SKETCH]
        return sorted(repr(row) for row in self.rows(dataset, *columns))

    def pasted(self, text: str) -> list[tuple[Any, ...]]:
        """Run the query that a message suggests."""
        (query,) = set(re.findall(r'blogdata sql "([^"]+)"', text))
        return self.asked(query)

    def asked(self, query: str) -> list[tuple[Any, ...]]:
        """Run a query as `blogdata sql` does."""
        with self.session() as spark:
            return [tuple(row) for row in Query.of(self.lake, query, None, keys=self.settings).frame(spark).collect()]

    def ledger(self) -> list[LedgerLine]:
        """Audit every account, as `blogdata ledger` does."""
        lake, events = self.lake, self.events
        return [line for contract in CONTRACTS.values() for line in ledger.audit(lake, events, contract)]

    def undeclared(self) -> set[tuple[str, str]]:
        """List reasons of removed rows that their dataset's contract does not declare."""
        return {
            (name, reason)
            for name, contract in EVERY.items()
            for entry in self.published(name).values()
            for reason in entry.reasons
            if not any(fnmatch(reason, declared) for declared in (*contract.reasons, *contract.left_out))
        }

    def problems(self) -> list[str]:
        """List the problems that the ledger finds."""
        return [
            f"{line.entry.dataset} {line.entry.partition}: {line.problem}" for line in self.ledger() if line.problem
        ]


def module(name: str) -> ModuleType:
    return importlib.import_module(name)


def share_key(home: Path) -> None:
    """Give a home the keys of all tests' deployments."""
    folder = home / "secrets"
    folder.mkdir(mode=0o700)
    encrypted = (contract.encrypted.key for contract in EVERY.values() if contract.encrypted)
    for key in (folder / name for name in (VISITOR_KEY, *encrypted)):
        key.touch(mode=0o600)
        key.write_text(COMMON_KEY, encoding="utf-8")


def event(time: str, page: str, **more: object) -> bytes:
    """Build a visit event of 2026-01-05, `time` as 10:05; the visitor's fields depend on the page."""
    fields = {
        "visit_id": f"visit-{page}",
        "event_time": f"2026-01-05T{time}:00Z",
        "user_id": f"user-{page}",
        "keep_private": False,
        "page": page,
        "context": {"technical": {"browser": "Firefox", "device_type": "PC"}},
    }
    return json.dumps({**fields, **more}).encode()
