"""Writes a landing zone and its known truth, hour by hour.

Memory use depends on the busiest hour and on the lines that wait for later hours, not on the length of the span.
The same spec produces the same bytes, so an interrupted simulation is simply started again: complete folders are
kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from errors import PlatformError
from simulator.displays import HOURS_AHEAD, Shown, displays_of
from simulator.feed import ADS, VISITS, Feed
from simulator.files import flag_complete, is_complete, write_whole
from simulator.population import DayCounts, Population, device_snapshot
from simulator.rendering import Visits
from simulator.spec import SimulationSpec
from simulator.text import data
from simulator.truth import TRUTH, AdsTruth, MatchCounter, Truth, load, store
from simulator.visits import events_per_hour, visits_of
from simulator.vocabulary import pools

Progress = Callable[[int, int], None]


class LandingOccupied(PlatformError):
    """Raised when the landing zone already holds data other than this simulation's."""


def no_progress(done: int, total: int) -> None:
    """Ignores the progress; the default of :func:`simulate`."""


def simulate(spec: SimulationSpec, landing: Path, progress: Progress = no_progress) -> Truth:
    """Simulates visits, users and devices into a landing zone, and displayed ads if the spec has them.

    Args:
        spec: The simulated world.
        landing: The landing zone; created if absent. If it holds the same simulation without ads, ads are added.
        progress: Called after each hour with (hours done, total hours).

    Returns:
        The truth, also written to `_truth/` in the landing zone.

    Raises:
        LandingOccupied: The landing zone holds another simulation, or hours that no simulation wrote.
    """
    if _claim(spec, landing):
        return load(landing)
    population, vocabulary = Population(spec), pools()
    feed = Feed(spec=spec, landing=landing, source=VISITS)
    ads = _Ads(spec, landing) if spec.ads else None
    users: list[DayCounts] = []
    devices: list[DayCounts] = []
    for hour, rows in enumerate(events_per_hour(spec)):
        visits = visits_of(spec, hour, int(rows), population, vocabulary)
        feed.add(hour, Visits(hour=visits))
        feed.land(hour)
        if ads is not None:
            ads.take(hour, displays_of(spec, hour, visits, vocabulary))
        if hour % 24 == 23:
            devices.append(_land_devices(spec, landing, hour // 24))
            users.append(_land_users(spec, landing, population))
            if hour + 1 < spec.hours:
                population.next_day()
        progress(hour + 1, spec.hours)
    truth = Truth(
        spec=spec.as_json(),
        hours=feed.counter.hours,
        event_hours=feed.counter.event_hours,
        users=tuple(users),
        devices=tuple(devices),
        ads=None if ads is None else ads.truth(),
    )
    store(landing, truth)
    _write_claim(spec, landing, finished=True)
    return truth


class _Ads:
    """The ad displays while they are written."""

    def __init__(self, spec: SimulationSpec, landing: Path) -> None:
        self._spec = spec
        self._feed = Feed(spec=spec, landing=landing, source=ADS)
        self._matches = MatchCounter(spec)

    def take(self, hour: int, shown: Shown) -> None:
        """Take the displays in the visits that start in an hour, and land those hours to which no visit adds any."""
        self._feed.add(hour, shown.displays)
        self._matches.shown(shown)
        last = hour == self._spec.hours - 1
        for done in range(max(0, hour - HOURS_AHEAD), hour + 1 if last else hour - HOURS_AHEAD + 1):
            self._feed.land(done)

    def truth(self) -> AdsTruth:
        """Return the counts of all that landed."""
        counter = self._feed.counter
        return AdsTruth(hours=counter.hours, display_hours=counter.event_hours, matches=self._matches.hours)


def _claim(spec: SimulationSpec, landing: Path) -> bool:
    """Claims the landing zone for this simulation; returns True if the simulation is already complete."""
    path = landing / TRUTH / "spec.json"
    if path.exists():
        found = json.loads(path.read_text())
        if found["spec"] == spec.without_ads and spec.ads:
            _write_claim(spec, landing, finished=False)
            return False
        if found["spec"] != spec.as_json():
            raise LandingOccupied(
                what="the landing zone holds another simulation",
                where=f"{path}: {_differences(found['spec'], spec.as_json())}",
                next_step="choose another landing zone, or repeat the options this one was made with",
            )
        return bool(found["finished"])
    for source in ("visits", "users", "devices", "ads", "access_logs"):
        taken = next(iter((landing / source).glob("*" if source == "access_logs" else "date=*")), None)
        if taken is not None:
            raise LandingOccupied(
                what="the landing zone holds data that no simulation wrote",
                where=str(taken),
                next_step="choose an empty landing zone: simulated and real data would be counted together",
            )
    _write_claim(spec, landing, finished=False)
    return False


def _differences(found: dict[str, object], wanted: dict[str, object]) -> str:
    names = [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]
    return ", ".join(f"{name} is {found.get(name)}, not {wanted.get(name)}" for name in names)


def _write_claim(spec: SimulationSpec, landing: Path, *, finished: bool) -> None:
    claim = {"spec": spec.as_json(), "finished": finished}
    write_whole(landing / TRUTH / "spec.json", [json.dumps(claim, indent=1).encode() + b"\n"])


def _land_users(spec: SimulationSpec, landing: Path, population: Population) -> DayCounts:
    lines, counts = population.snapshot()
    _land_snapshot(landing / "users" / f"date={counts.date}", "users.json", data(lines, 0, len(lines)))
    return counts


def _land_devices(spec: SimulationSpec, landing: Path, day: int) -> DayCounts:
    content, counts = device_snapshot(spec, day)
    _land_snapshot(landing / "devices" / f"date={counts.date}", "devices.csv", content)
    return counts


def _land_snapshot(folder: Path, name: str, content: object) -> None:
    if not is_complete(folder):
        write_whole(folder / name, [content])
        flag_complete(folder)
