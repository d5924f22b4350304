"""The input of a campaign: a small seeded landing zone with faults, in a first and a later state."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from blogdata.services import config
from blogdata.simulator.faults import FaultRates
from blogdata.simulator.spec import SimulationSpec
from lineage import expected
from lineage.deployment import Deployment, event, share_key
from lineage.expected import Expected
from lineage.expected_ads import Row
from quality.contracts import CONTRACTS

FIRST, THEN = ("2026-01-05T00", "2026-01-05T01"), "2026-01-05T02"
DAYS = ("2026-01-05", "2026-01-06")
FAULTS = FaultRates.none(duplicate=0.1, conflict=0.1, not_json=0.05, late=0.2)
CHECKPOINT_INTERVAL = 2
UNORDERED = frozenset({"reasons"})
"""Columns whose lists have no order."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference between a table's rows and the expected rows.

    Args:
        compared: Number of expected rows.
        lost: Expected rows that are missing.
        doubled: Rows that occur more often than expected.
        foreign: Rows that are not expected at all.
    """

    compared: int
    lost: int
    doubled: int
    foreign: int

    @property
    def none(self) -> bool:
        """Whether there is no difference."""
        return not (self.lost or self.doubled or self.foreign)


@dataclass(frozen=True, kw_only=True)
class World:
    """Landing zones of one seed, and the expected rows.

    Args:
        seed: Of the simulation.
        first: Landing zone of two hours of arrival, and the first deliveries of users and devices.
        then: The first landing zone plus a new hour, a late file in one of the two hours, the next delivery of users,
            a second delivery of devices for the same day, so no other day's list precedes it, and the rest of the week,
            in which nothing happens until a visit of the next one.
        rules: The expected rows of every dataset for `then`, counted in plain Python.
    """

    seed: int
    first: Path
    then: Path
    rules: Mapping[str, Expected]

    @classmethod
    def create(cls, folder: Path, seed: int) -> World:
        """Simulate a world into a new folder."""
        everything = Deployment.create(folder / "simulated")
        spec = SimulationSpec(days=2, visits_per_day=2400, seed=seed, faults=FAULTS, part_lines=15, ads=True)
        everything.simulate(spec)
        first, then = Deployment.create(folder / "first"), Deployment.create(folder / "then")
        first.copy_hours(everything, FIRST)
        for table in ("users", "devices"):
            shutil.rmtree(first.landing / table / f"date={DAYS[1]}")
        then.copy_hours(everything, [*FIRST, THEN])
        _other_devices(then.landing)
        _late_file(then)
        _late_displays(then)
        _end_week(then)
        return cls(seed=seed, first=first.landing, then=then.landing, rules=expected.of(then.landing))

    def deployment(self, home: Path, fixed: str) -> Deployment:
        """Make a deployment with the first landing zone.

        Args:
            home: Its home.
            fixed: Settings that all deployments of the campaign share, as TOML.
        """
        home.mkdir(parents=True)
        (home / "blogdata.toml").write_text(fixed)
        share_key(home)
        shutil.copytree(self.first, home / "landing")
        return Deployment(settings=config.load(overrides={"BLOGDATA_HOME": str(home)}))

    def arrive(self, deployment: Deployment) -> None:
        """Land everything else."""
        shutil.copytree(self.then, deployment.landing, dirs_exist_ok=True)


def _other_devices(landing: Path) -> None:
    (file,), (newer,) = (list((landing / "devices" / f"date={day}").glob("*.csv")) for day in DAYS)
    lines = newer.read_text(encoding="utf-8").splitlines()
    kept = [*lines[:-1], "Toaster;The one in the kitchen;1"] if lines[0] == "type;full_name;version" else None
    assert kept is not None, f"the devices have other columns now: {lines[0]}"
    file.write_text("\n".join(kept) + "\n", encoding="utf-8")
    shutil.rmtree(newer.parent)


def _late_file(deployment: Deployment) -> None:
    # Both published hours receive late events: one of them twice, and one invalid line.
    lines = []
    for hour in FIRST:
        (file, *_) = sorted(deployment.folder(hour).glob("*.json"))
        given = next(line for line in file.read_bytes().splitlines() if b'"page"' in line and line.endswith(b"}"))
        lines += [given.replace(b'"page": "', b'"page": "/late').replace(b'"page":"', b'"page":"/late')] * 2
    deployment.land(FIRST[1], [*lines, b"{"], name="visits-late.json")


def _late_displays(deployment: Deployment) -> None:
    # The same for displayed ads, which an hour of so few visits may lack; one differs from the others.
    ad = {"ad_id": "late", "page": "/", "visit_id": "late", "campaign": "late"}
    lines = [json.dumps({**ad, "display_time": f"{hour}:30:00Z"}).encode() for hour in FIRST for _ in range(2)]
    lines += [line.replace(b'"campaign": "late"', b'"campaign": "other"') for line in lines[:1]]
    deployment.land(FIRST[1], [*lines, b"{"], name="ads-late.json", table="ads")


def _end_week(deployment: Deployment) -> None:
    # Weekly tables that wait for a complete week, or for its end, have rows only then.
    monday = datetime.fromisoformat(f"{DAYS[0]}T00:00")
    hours = [(monday + timedelta(hours=number)).isoformat(timespec="hours") for number in range(7 * 24 + 1)]
    for hour in hours[hours.index(THEN) + 1 :]:
        deployment.land(hour, [event("00:10", "/next", event_time=f"{hour}:10:00Z")] if hour == hours[-1] else [])


def rows(deployment: Deployment, dataset: str, columns: Sequence[str]) -> Counter[Row]:
    """Read a table without Spark; lists become tuples, sorted where their order does not matter."""

    def cell(name: str, value: Any) -> Any:
        return tuple(sorted(value) if name in UNORDERED else value) if isinstance(value, list) else value

    found: list[Any] = deployment.rows(dataset, *columns)
    return Counter(tuple(map(cell, columns, row)) for row in found)


def everything(deployment: Deployment) -> dict[str, Counter[Row]]:
    """Read every row of every table as text."""
    names = [name for name in CONTRACTS if deployment.lake.caught_up(name) is not None]
    return {name: Counter((text,) for text in deployment.contents_of(name)) for name in names}


def difference(found: Counter[Row], wanted: Counter[Row]) -> Difference:
    """Compare rows with the expected ones."""
    more = found - wanted
    return Difference(
        compared=wanted.total(),
        lost=(wanted - found).total(),
        doubled=sum(times for row, times in more.items() if row in wanted),
        foreign=sum(times for row, times in more.items() if row not in wanted),
    )
