"""Writes a landing zone and its known truth, hour by hour.

Memory use depends on the busiest hour and on the lines that wait for later hours, not on the length of the span.
The same spec produces the same bytes, so an interrupted simulation is simply started again: complete folders are
kept. Hours are added in the same way: the longer span is simulated, and only its new hours are written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from blogdata.errors import ConfigurationError, PlatformError
from blogdata.errors.remedies import Land, Remedy
from blogdata.files import write_whole
from blogdata.simulator.broken import VALID, ChangeEvents, break_lines, draw_faults
from blogdata.simulator.population import Population, device_snapshot, pools
from blogdata.simulator.simulated_visits import HOURS_AHEAD, displays_of, events_per_hour, visits_of
from blogdata.simulator.spec import FORMAT, SimulationSpec
from blogdata.simulator.text import HOUR_MS, Ints, Texts, data, join, literal, offsets
from blogdata.simulator.truth import CONFLICT, DUPLICATE, ORIGINAL, TRUTH, Counter, Truth, load, store

ENDED = "_ENDED"
_COPY_LATER_HOURS = 24
_LATER_COPIES = 0.3


def flag_complete(folder: Path) -> None:
    write_whole(folder / "_SUCCESS", b"")


def is_complete(folder: Path) -> bool:
    return (folder / "_SUCCESS").exists()


Lines: TypeAlias = Any
"""An Arrow table of lines that have not landed yet: bytes with line feed, arrival times, and the truth about each."""


def _lines(text: Texts, arrival_ms: Ints, event_ms: Ints, reason: Ints, copy: int) -> Lines:
    facts = {"arrival_ms": arrival_ms, "event_ms": event_ms, "reason": reason, "copy": np.full(len(reason), copy)}
    return pa.table({"text": text, **facts})


@dataclass(frozen=True, kw_only=True)
class LandedTable:
    table: str
    latest_ms: int
    late_step_ms: int
    state_stream: int
    fault_stream: int


VISITS = LandedTable(table="visits", latest_ms=48 * HOUR_MS, late_step_ms=HOUR_MS, state_stream=3, fault_stream=4)
ADS = LandedTable(table="ads", latest_ms=HOUR_MS, late_step_ms=60_000, state_stream=6, fault_stream=7)


@dataclass(kw_only=True)
class SimulatedFeed:
    spec: SimulationSpec
    landing: Path
    source: LandedTable
    since: int = 0
    counter: Counter = field(init=False)

    def __post_init__(self) -> None:
        self.counter = Counter(self.spec)
        self._state = _hour_states(self.spec, self.source)
        self._lands_in = _landing_hours(self._state)
        self._waiting: dict[int, list[Lines]] = {}

    def add(self, hour: int, events: ChangeEvents) -> None:
        """Renders all lines of an hour's events; each waits for the hour in which it arrives, if it is of the span."""
        for lines in _lines_of(self.spec, self.source, hour, events):
            arrives = (lines["arrival_ms"].to_numpy() - self.spec.start_ms) // HOUR_MS
            due = self._lands_in[np.minimum(arrives, self.spec.hours)]
            for landing_hour in np.unique(due[due < self.spec.hours]):
                part = lines.filter(pa.array(due == landing_hour))
                self._waiting.setdefault(int(landing_hour), []).append(part)

    def land(self, hour: int) -> None:
        folder = self.landing / self.source.table / f"date={self.spec.day_key(hour // 24)}" / f"hour={hour % 24:02d}"
        state, lines = self._state[hour], _ordered(self._waiting.pop(hour, []))
        text = lines["text"].combine_chunks()
        ends = offsets(text)
        facts = (lines[name].to_numpy() for name in ("event_ms", "reason", "copy"))
        self.counter.arrived(hour, state, int(ends[-1] - ends[0]), *facts)
        if state == "missing" or hour < self.since or is_complete(folder):
            return
        for part, begin in enumerate(range(0, len(text), self.spec.part_lines)):
            end = min(begin + self.spec.part_lines, len(text))
            write_whole(folder / f"{self.source.table}-{part:05d}.json", data(text, begin, end))
        flag_complete(folder)


def _hour_states(spec: SimulationSpec, source: LandedTable) -> list[str]:
    draw = np.random.default_rng([spec.seed, source.state_stream])
    chance = draw.random(spec.hours)
    missing, empty = spec.faults.missing_hour, spec.faults.empty_hour
    states = np.where(chance < missing, "missing", np.where(chance < missing + empty, "empty", "landed"))
    # Nothing of the days lands after them.
    states[spec.first_added - 1] = "landed"
    return [str(state) for state in states]


def _landing_hours(states: list[str]) -> Ints:
    """Computes the hour in which the lines due in each hour land: that hour, or the next one with state `landed`.

    The last number is that of the lines due after the span, and of those that no hour of it takes any more.
    """
    hours = np.arange(len(states) + 1)
    landed = np.array([*(state == "landed" for state in states), True])
    due = np.where(landed, hours, len(states))
    return np.minimum.accumulate(due[::-1])[::-1]


def _lines_of(spec: SimulationSpec, source: LandedTable, hour: int, events: ChangeEvents) -> list[Lines]:
    draw = np.random.default_rng([spec.seed, source.fault_stream, hour])
    faults, count = draw_faults(draw, spec.faults, events), len(events.event_ms)
    last_ms = spec.end_ms(hour) - 1000
    arrival_ms = events.arrival_ms.copy()
    for fault, step_ms, latest_ms in (
        ("late", source.late_step_ms, source.latest_ms),
        ("minutes_late", 60_000, HOUR_MS),
    ):
        late = faults.pop(fault)
        delayed = arrival_ms[late] + draw.integers(1, latest_ms // step_ms + 1, len(late)) * step_ms
        arrival_ms[late] = np.where(delayed < last_ms, delayed, arrival_ms[late])
    text = join(events.changed(np.arange(count)), literal("\n")).cast(pa.large_binary())
    clean = _lines(text, arrival_ms, events.event_ms, np.full(count, VALID), ORIGINAL)
    made: list[Lines] = []
    kept = np.ones(count, bool)
    for fault, rows in faults.items():
        if not len(rows):
            continue
        again = _again(draw, arrival_ms[rows], last_ms)
        if fault == "duplicate":
            made.append(
                _lines(text.take(pa.array(rows)), again, events.event_ms[rows], np.full(len(rows), VALID), DUPLICATE)
            )
            continue
        broken, reason = break_lines(fault, events, rows, draw)
        arrival, kind = (again, CONFLICT) if fault == "conflict" else (arrival_ms[rows], ORIGINAL)
        made.append(_lines(broken, arrival, events.event_ms[rows], reason, kind))
        kept[rows] &= fault == "conflict"
    return [clean.filter(pa.array(kept)), *made]


def _again(draw: np.random.Generator, first_ms: Ints, last_ms: int) -> Ints:
    """Draws arrival times of copies: within 5 minutes after the original, 30 % of them 1 to 24 hours later."""
    soon = first_ms + draw.integers(1, 5 * 60_000, len(first_ms))
    later = soon + draw.integers(1, _COPY_LATER_HOURS + 1, len(first_ms)) * HOUR_MS
    chosen = np.where((draw.random(len(first_ms)) < _LATER_COPIES) & (later < last_ms), later, soon)
    return np.where(chosen < last_ms, chosen, first_ms + 1)


def _ordered(arrived: list[Lines]) -> Lines:
    none = np.zeros(0, np.int64)
    together = pa.concat_tables([_lines(pa.array([], pa.large_binary()), none, none, none, ORIGINAL), *arrived])
    return together.take(np.argsort(together["arrival_ms"].to_numpy(), kind="stable"))


Progress = Callable[[int, int], None]


def simulate(spec: SimulationSpec, landing: Path, progress: Progress = lambda done, total: None) -> Truth:
    claim = _claim(spec, landing)
    if claim.finished:
        _note_end(claim.spec, landing)
        return load(landing)
    return _land(claim, landing, progress)


def add(hours: int, landing: Path, progress: Progress = lambda done, total: None, *, now: datetime) -> Truth:
    """Lands the next hours of the simulation that a landing zone holds; those that have landed keep their bytes.

    If it was interrupted, the same call again lands what is left of these hours, and no others.
    """
    claim = _stored(landing)
    if claim is None:
        raise ConfigurationError(
            what="the landing zone holds no simulation that hours could be added to",
            where=str(landing),
            next_step=Remedy("simulate some days first: ", Land()),
        )
    if claim.finished or not claim.since or claim.spec.hours - claim.since != hours:
        longer = replace(claim.spec, added_hours=claim.spec.added_hours + hours)
        claim = _Claim(spec=longer, since=claim.spec.hours if claim.finished else claim.since)
    begun = (int(now.timestamp()) * 1000 - claim.spec.start_ms) // HOUR_MS + 1
    if claim.spec.hours > begun:
        free = max(0, begun - claim.spec.hours + hours)
        raise ConfigurationError(
            what=f"{hours} hours cannot be added: {free} have begun that have not landed",
            where=str(landing),
            next_step=f"add {free}" if free else "wait until the next hour begins",
        )
    claim.write(landing)
    return _land(claim, landing, progress)


def _land(claim: _Claim, landing: Path, progress: Progress) -> Truth:
    spec, since = claim.spec, claim.since
    population, vocabulary = Population(spec), pools()
    feed = SimulatedFeed(spec=spec, landing=landing, source=VISITS, since=since)
    ads = SimulatedFeed(spec=spec, landing=landing, source=ADS, since=since)
    # Where the span goes on after its last hour, displays of that hour may be in visits of the next one.
    ahead = HOURS_AHEAD if spec.added_hours else 0
    for hour, rows in enumerate(events_per_hour(spec, spec.hours + ahead)):
        visits = visits_of(spec, hour, int(rows), population, vocabulary)
        if spec.ads:
            ads.add(hour, displays_of(spec, hour, visits, vocabulary))
            for complete in _complete(spec, hour):
                ads.land(complete)
        if hour >= spec.hours:
            break
        feed.add(hour, visits)
        feed.land(hour)
        if hour % 24 == 23:
            day = f"date={spec.day_key(hour // 24)}"
            if hour >= since:
                lines = population.snapshot()
                _land_snapshot(landing / "devices" / day, "devices.csv", device_snapshot(hour // 24))
                _land_snapshot(landing / "users" / day, "users.json", data(lines, 0, len(lines)))
            if hour + 1 < spec.hours + ahead:
                population.next_day()
        progress(hour + 1, spec.hours)
    truth = replace(feed.counter.truth(), ads=ads.counter.truth() if spec.ads else None)
    store(landing, truth)
    replace(claim, finished=True).write(landing)
    _note_end(spec, landing)
    return truth


def begin_of(landing: Path) -> date | None:
    claim = _stored(landing)
    return None if claim is None else claim.spec.start


def _complete(spec: SimulationSpec, hour: int) -> range:
    """Returns the hours to which no visit after those that start in an hour adds a display."""
    added = spec.first_added
    first, last = added if hour >= added else 0, hour == added - 1
    return range(max(first, hour - HOURS_AHEAD), hour + 1 if last else hour - HOURS_AHEAD + 1)


@dataclass(frozen=True, kw_only=True)
class _Claim:
    spec: SimulationSpec
    since: int = 0
    finished: bool = False

    def write(self, landing: Path) -> None:
        claim = {"spec": self.spec.as_json(), "since": self.since, "finished": self.finished}
        write_whole(landing / TRUTH / "spec.json", json.dumps(claim, indent=1).encode() + b"\n")


def _stored(landing: Path) -> _Claim | None:
    path = landing / TRUTH / "spec.json"
    if not path.exists():
        return None
    stored = json.loads(path.read_text())
    if stored["spec"]["format"] != FORMAT:
        raise PlatformError(
            what="the landing zone holds a simulation of another version of the simulator",
            where=str(path),
            next_step="choose another landing zone",
        )
    spec = SimulationSpec.from_json(stored["spec"])
    return _Claim(spec=spec, since=stored.get("since", 0), finished=stored["finished"])


def _claim(spec: SimulationSpec, landing: Path) -> _Claim:
    claim = _stored(landing)
    if claim is not None:
        spec = replace(spec, added_hours=claim.spec.added_hours)
        if spec != claim.spec:
            raise PlatformError(
                what="the landing zone holds another simulation",
                where=f"{landing / TRUTH / 'spec.json'}: {claim.spec.as_json()}",
                next_step="choose another landing zone, or repeat the options this one was made with",
            )
        return claim
    _require_empty(landing)
    new = _Claim(spec=spec)
    new.write(landing)
    return new


def _require_empty(landing: Path) -> None:
    for source in ("visits", "users", "devices", "ads", "access_logs"):
        taken = next(iter((landing / source).glob("*" if source == "access_logs" else "date=*")), None)
        if taken is not None:
            raise PlatformError(
                what="the landing zone holds data that no simulation wrote",
                where=str(taken),
                next_step="choose an empty landing zone: simulated and real data would be counted together",
            )


def _note_end(spec: SimulationSpec, landing: Path) -> None:
    """Notes that no more data come, or whoever watches their flow would miss them."""
    end = datetime.fromtimestamp((spec.start_ms + spec.hours * HOUR_MS) / 1000, timezone.utc)
    note, content = landing / ENDED, end.isoformat().encode() + b"\n"
    if not note.exists() or note.read_bytes() != content:
        write_whole(note, content)


def _land_snapshot(folder: Path, name: str, content: bytes) -> None:
    if not is_complete(folder):
        write_whole(folder / name, content)
        flag_complete(folder)
