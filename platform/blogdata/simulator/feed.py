"""Lands the events of one kind by hour of arrival, with faults, and counts what landed.

Memory use depends on the busiest hour and on the lines that wait for later hours, not on the length of the span.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from blogdata.simulator.broken import VALID, ChangeEvents, break_lines, draw_faults
from blogdata.simulator.files import compressed, flag_complete, is_complete, write_whole
from blogdata.simulator.spec import SimulationSpec
from blogdata.simulator.text import HOUR_MS, Ints, Texts, data, offsets
from blogdata.simulator.truth import CONFLICT, DUPLICATE, ORIGINAL, Counter

_COPY_LATER_HOURS = 24
_LATER_COPIES = 0.3


Lines: TypeAlias = Any
"""An Arrow table of lines that have not landed yet: bytes with line feed, arrival times, and the truth about each."""


def _lines(text: Texts, arrival_ms: Ints, event_ms: Ints, reason: Ints, copy: int) -> Lines:
    facts = {"arrival_ms": arrival_ms, "event_ms": event_ms, "reason": reason, "copy": np.full(len(reason), copy)}
    return pa.table({"text": text, **facts})


@dataclass(frozen=True, kw_only=True)
class LandedTable:
    """A landed table of events, and the numbers of its streams of random choices."""

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
        """Writes the lines that have arrived in an hour, unless that is done; no more may come for it."""
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
            block = data(text, begin, end)
            name = f"{self.source.table}-{part:05d}.json"
            if self.spec.gzip:
                write_whole(folder / f"{name}.gz", compressed(block))
            else:
                write_whole(folder / name, [block])
        flag_complete(folder)


def _hour_states(spec: SimulationSpec, source: LandedTable) -> list[str]:
    draw = np.random.default_rng([spec.seed, source.state_stream])
    chance = draw.random(spec.hours)
    missing, empty = spec.faults.missing_hour, spec.faults.empty_hour
    states = np.where(chance < missing, "missing", np.where(chance < missing + empty, "empty", "landed"))
    # Nothing of the days lands after them.
    states[spec.first_added - 1] = "landed"
    return [str(one) for one in states]


def _landing_hours(states: list[str]) -> Ints:
    """Computes the hour in which the lines due in each hour land: that hour, or the next one with state `landed`.

    The last number is that of the lines due after the span, and of those that no hour of it takes any more.
    """
    hours = np.arange(len(states) + 1)
    landed = np.array([*(one == "landed" for one in states), True])
    due = np.where(landed, hours, len(states))
    return np.minimum.accumulate(due[::-1])[::-1]


def _lines_of(spec: SimulationSpec, source: LandedTable, hour: int, events: ChangeEvents) -> list[Lines]:
    """Renders all lines of an hour's events, whenever they land: clean lines first, then those with each fault."""
    draw = np.random.default_rng([spec.seed, source.fault_stream, hour])
    faults, count = draw_faults(draw, spec.faults, events), len(events.event_ms)
    last_ms = spec.end_ms(hour) - 1000
    arrival_ms = events.arrival_ms.copy()
    late, steps = faults.pop("late"), source.latest_ms // source.late_step_ms
    delayed = arrival_ms[late] + draw.integers(1, steps + 1, len(late)) * source.late_step_ms
    arrival_ms[late] = np.where(delayed < last_ms, delayed, arrival_ms[late])
    a_little = faults.pop("minutes_late")
    delayed = arrival_ms[a_little] + draw.integers(1, 61, len(a_little)) * 60_000
    arrival_ms[a_little] = np.where(delayed < last_ms, delayed, arrival_ms[a_little])
    text = events.clean().cast(pa.large_binary())
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
