"""Writes a landing zone and its known truth, hour by hour.

Memory use depends on the busiest hour and on the lines that wait for later hours, not on the length of the span.
The same spec produces the same bytes, so an interrupted simulation is simply started again: complete folders are
kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from errors import PlatformError
from simulator.broken import VALID, break_lines, draw_faults
from simulator.files import compressed, flag_complete, is_complete, write_whole
from simulator.population import DayCounts, Population, device_snapshot
from simulator.rendering import clean_lines
from simulator.spec import SimulationSpec
from simulator.text import HOUR_MS, Flags, Ints, Texts, data, offsets
from simulator.truth import CONFLICT, DUPLICATE, ORIGINAL, TRUTH, Counter, Truth, load, store
from simulator.visits import Hour, events_per_hour, visits_of
from simulator.vocabulary import pools

_MOST_HOURS_LATE = 48
_COPY_LATER_HOURS = 24
_LATER_COPIES = 0.3
Progress = Callable[[int, int], None]


class LandingOccupied(PlatformError):
    """Raised when the landing zone already holds data other than this simulation's."""


def no_progress(done: int, total: int) -> None:
    """Ignores the progress; the default of :func:`simulate`."""


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Lines that have not landed yet: bytes with line feed, arrival times, and the truth about each line."""

    text: Texts
    arrival_ms: Ints
    event_ms: Ints
    reason: Ints
    copy: Ints

    def select(self, rows: Ints | Flags) -> Lines:
        """Selects lines by a mask, or by positions and in their order."""
        places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Lines(
            text=self.text.take(pa.array(places)),
            arrival_ms=self.arrival_ms[places],
            event_ms=self.event_ms[places],
            reason=self.reason[places],
            copy=self.copy[places],
        )


def simulate(spec: SimulationSpec, landing: Path, progress: Progress = no_progress) -> Truth:
    """Simulates visits, users and devices into a landing zone.

    Args:
        spec: The simulated world.
        landing: The landing zone; created if absent.
        progress: Called after each hour with (hours done, total hours).

    Returns:
        The truth, also written to `_truth/` in the landing zone.

    Raises:
        LandingOccupied: The landing zone holds another simulation, or hours that no simulation wrote.
    """
    if _claim(spec, landing):
        return load(landing)
    population, vocabulary, counter = Population(spec), pools(), Counter(spec)
    state = _hour_states(spec)
    lands_in = _landing_hours(state)
    waiting: dict[int, list[Lines]] = {}
    users: list[DayCounts] = []
    devices: list[DayCounts] = []
    for hour, rows in enumerate(events_per_hour(spec)):
        made = _lines_of(spec, hour, visits_of(spec, hour, int(rows), population, vocabulary))
        _dispatch(spec, made, lands_in, waiting)
        _land(spec, landing, hour, state[hour], waiting.pop(hour, []), counter)
        if hour % 24 == 23:
            devices.append(_land_devices(spec, landing, hour // 24))
            users.append(_land_users(spec, landing, population))
            if hour + 1 < spec.hours:
                population.next_day()
        progress(hour + 1, spec.hours)
    truth = Truth(
        spec=spec.as_json(),
        hours=counter.hours,
        event_hours=counter.event_hours,
        users=tuple(users),
        devices=tuple(devices),
    )
    store(landing, truth)
    _write_claim(spec, landing, finished=True)
    return truth


def _claim(spec: SimulationSpec, landing: Path) -> bool:
    """Claims the landing zone for this simulation; returns True if the simulation is already complete."""
    path = landing / TRUTH / "spec.json"
    if path.exists():
        found = json.loads(path.read_text())
        if found["spec"] != spec.as_json():
            raise LandingOccupied(
                what="the landing zone holds another simulation",
                where=f"{path}: {_differences(found['spec'], spec.as_json())}",
                next_step="choose another landing zone, or repeat the options this one was made with",
            )
        return bool(found["finished"])
    for source, content in (("visits", "date=*"), ("users", "date=*"), ("devices", "date=*"), ("access_logs", "*")):
        taken = next(iter((landing / source).glob(content)), None)
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


def _hour_states(spec: SimulationSpec) -> list[str]:
    draw = np.random.default_rng([spec.seed, 3])
    chance = draw.random(spec.hours)
    missing, empty = spec.faults.missing_hour, spec.faults.empty_hour
    states = np.where(chance < missing, "missing", np.where(chance < missing + empty, "empty", "landed"))
    states[-1] = "landed"
    return [str(one) for one in states]


def _landing_hours(states: list[str]) -> Ints:
    """Computes the hour in which the lines due in each hour land: that hour, or the next one with state `landed`."""
    hours = np.arange(len(states))
    landed = np.array([one == "landed" for one in states])
    due = np.where(landed, hours, len(states) - 1)
    return np.minimum.accumulate(due[::-1])[::-1]


def _lines_of(spec: SimulationSpec, hour: int, events: Hour) -> list[Lines]:
    """Renders all lines of an hour's events, whenever they land: clean lines first, then those with each fault."""
    draw = np.random.default_rng([spec.seed, 4, hour])
    faults = draw_faults(draw, spec.faults, len(events))
    last_ms = spec.start_ms + spec.hours * HOUR_MS - 1000
    arrival_ms = events.arrival_ms.copy()
    late = faults.pop("late")
    delayed = arrival_ms[late] + draw.integers(1, _MOST_HOURS_LATE + 1, len(late)) * HOUR_MS
    arrival_ms[late] = np.where(delayed < last_ms, delayed, arrival_ms[late])
    clean = Lines(
        text=clean_lines(events).cast(pa.large_binary()),
        arrival_ms=arrival_ms,
        event_ms=events.event_ms,
        reason=np.full(len(events), VALID),
        copy=np.full(len(events), ORIGINAL),
    )
    made: list[Lines] = []
    kept = np.ones(len(events), bool)
    for fault, rows in faults.items():
        if not len(rows):
            continue
        again = _again(draw, arrival_ms[rows], last_ms)
        if fault == "duplicate":
            copies = clean.select(rows)
            text, reason, arrival, kind = copies.text, copies.reason, again, DUPLICATE
        else:
            broken = break_lines(fault, events, rows, draw)
            text, reason, arrival, kind = broken.lines, broken.reason, arrival_ms[rows], ORIGINAL
            if fault == "conflict":
                arrival, kind = again, CONFLICT
            else:
                kept[rows] = False
        made.append(
            Lines(
                text=text,
                arrival_ms=arrival,
                event_ms=events.event_ms[rows],
                reason=reason,
                copy=np.full(len(rows), kind),
            )
        )
    return [clean if kept.all() else clean.select(kept), *made]


def _again(draw: np.random.Generator, first_ms: Ints, last_ms: int) -> Ints:
    """Draws arrival times of copies: within 5 minutes after the original, 30 % of them 1 to 24 hours later."""
    soon = first_ms + draw.integers(1, 5 * 60_000, len(first_ms))
    later = soon + draw.integers(1, _COPY_LATER_HOURS + 1, len(first_ms)) * HOUR_MS
    chosen = np.where((draw.random(len(first_ms)) < _LATER_COPIES) & (later < last_ms), later, soon)
    return np.where(chosen < last_ms, chosen, first_ms + 1)


def _dispatch(spec: SimulationSpec, made: list[Lines], lands_in: Ints, waiting: dict[int, list[Lines]]) -> None:
    for lines in made:
        due = lands_in[(lines.arrival_ms - spec.start_ms) // HOUR_MS]
        for landing_hour in np.unique(due):
            whole = bool((due == landing_hour).all())
            part = lines if whole else lines.select(due == landing_hour)
            waiting.setdefault(int(landing_hour), []).append(part)


def _land(spec: SimulationSpec, landing: Path, hour: int, state: str, arrived: list[Lines], counter: Counter) -> None:
    day, hour_of_day = spec.day_key(hour // 24), hour % 24
    folder = landing / "visits" / f"date={day}" / f"hour={hour_of_day:02d}"
    lines = _ordered(arrived)
    ends = offsets(lines.text)
    counter.arrived(hour, state, int(ends[-1] - ends[0]), lines.event_ms, lines.reason, lines.copy)
    if state == "missing" or is_complete(folder):
        return
    for part, begin in enumerate(range(0, len(lines.text), spec.part_lines)):
        end = min(begin + spec.part_lines, len(lines.text))
        block = data(lines.text, begin, end)
        name = f"visits-{part:05d}.json"
        if spec.gzip:
            write_whole(folder / f"{name}.gz", compressed(block))
        else:
            write_whole(folder / name, [block])
    flag_complete(folder)


def _ordered(arrived: list[Lines]) -> Lines:
    """Merges the lines of an hour in arrival order."""
    if not arrived:
        nothing = np.zeros(0, np.int64)
        text = pa.array([], pa.large_binary())
        return Lines(text=text, arrival_ms=nothing, event_ms=nothing, reason=nothing, copy=nothing)
    together = Lines(
        text=pa.concat_arrays([lines.text for lines in arrived]),
        arrival_ms=np.concatenate([lines.arrival_ms for lines in arrived]),
        event_ms=np.concatenate([lines.event_ms for lines in arrived]),
        reason=np.concatenate([lines.reason for lines in arrived]),
        copy=np.concatenate([lines.copy for lines in arrived]),
    )
    return together.select(np.argsort(together.arrival_ms, kind="stable"))


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
