"""The known truth: counts of all that landed, taken by the simulator as it writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from blogdata.files import write_whole
from blogdata.simulator.broken import REASONS, VALID
from blogdata.simulator.spec import SimulationSpec
from blogdata.simulator.text import HOUR_MS, Ints

Row = TypeVar("Row")
TRUTH = "_truth"
ALLOWED_LATENESS_MS = 15 * 60_000
ORIGINAL, DUPLICATE, CONFLICT = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class ArrivalTruth:
    """Counts of one arrival hour; its state is `landed`, `empty` (the flag without lines) or `missing` (no folder).

    `late` are valid lines older than the watermark: the newest event time of earlier arrivals minus 15 minutes.
    """

    arrival_hour: str
    state: str
    lines: int
    bytes: int
    valid: int
    dead: int
    reasons: Mapping[str, int]
    late: int
    by_event_hour: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class EventTruth:
    """Counts of one event hour over all arrivals: valid = unique + duplicates; duplicates include the conflicts."""

    event_hour: str
    valid: int
    unique: int
    duplicates: int
    conflicts: int


@dataclass(frozen=True, kw_only=True)
class Truth:
    """All counts of a simulated landing zone, each by hour, in order, missing hours as well.

    `ads` has those of displays; None if none are simulated.
    """

    spec: Mapping[str, Any]
    hours: tuple[ArrivalTruth, ...]
    event_hours: tuple[EventTruth, ...]
    ads: Truth | None = None
    already_there: bool = False

    def total(self, figure: str) -> int:
        rows: Iterable[Any] = self.hours if figure in ArrivalTruth.__dataclass_fields__ else self.event_hours
        return sum(getattr(row, figure) for row in rows)


class Counter:
    def __init__(self, spec: SimulationSpec) -> None:
        self._spec = spec
        self.hours: list[ArrivalTruth] = []
        self._newest_ms: int | None = None
        self._events = np.zeros((3, spec.hours), np.int64)

    def truth(self) -> Truth:
        original, duplicate, conflict = self._events
        event_hours = (
            EventTruth(
                event_hour=self._spec.hour_key(int(hour)),
                valid=int(self._events[:, hour].sum()),
                unique=int(original[hour]),
                duplicates=int(duplicate[hour] + conflict[hour]),
                conflicts=int(conflict[hour]),
            )
            for hour in np.flatnonzero(self._events.sum(axis=0))
        )
        return Truth(spec=self._spec.as_json(), hours=tuple(self.hours), event_hours=tuple(event_hours))

    def arrived(self, hour: int, state: str, size: int, event_ms: Ints, reason: Ints, copy: Ints) -> None:
        """Counts the lines of one arrival hour; a reason of 0 is a valid line."""
        good = reason == VALID
        times = event_ms[good]
        late = 0 if self._newest_ms is None else int((times < self._newest_ms - ALLOWED_LATENESS_MS).sum())
        event_hour = (times - self._spec.start_ms) // HOUR_MS
        per_reason = np.bincount(reason, minlength=len(REASONS))
        per_event_hour = np.bincount(event_hour, minlength=self._spec.hours)
        for kind in (ORIGINAL, DUPLICATE, CONFLICT):
            self._events[kind] += np.bincount(event_hour[copy[good] == kind], minlength=self._spec.hours)
        if len(times):
            self._newest_ms = max(int(times.max()), self._newest_ms or 0)
        self.hours.append(
            ArrivalTruth(
                arrival_hour=self._spec.hour_key(hour),
                state=state,
                lines=len(reason),
                bytes=size,
                valid=len(times),
                dead=len(reason) - len(times),
                reasons={REASONS[n]: int(per_reason[n]) for n in np.flatnonzero(per_reason) if n != VALID},
                late=late,
                by_event_hour={
                    self._spec.hour_key(int(n)): int(per_event_hour[n]) for n in np.flatnonzero(per_event_hour)
                },
            )
        )


def store(landing: Path, truth: Truth) -> None:
    rows: dict[str, Iterable[Any]] = {"visits": truth.hours, "event_hours": truth.event_hours}
    if ads := truth.ads:
        rows |= {"ads": ads.hours, "display_hours": ads.event_hours}
    for name, entries in rows.items():
        lines = b"".join(json.dumps(asdict(entry)).encode() + b"\n" for entry in entries)
        write_whole(landing / TRUTH / f"{name}.jsonl", lines)


def load(landing: Path) -> Truth:
    folder = landing / TRUTH
    spec = json.loads((folder / "spec.json").read_text())["spec"]
    visits, ads = (
        Truth(
            spec=spec,
            hours=_rows(folder / f"{table}.jsonl", ArrivalTruth),
            event_hours=_rows(folder / f"{events}.jsonl", EventTruth),
            already_there=True,
        )
        for table, events in (("visits", "event_hours"), ("ads", "display_hours"))
    )
    return replace(visits, ads=ads if ads.hours else None)


def _rows(path: Path, kind: Callable[..., Row]) -> tuple[Row, ...]:
    lines = path.read_text().splitlines() if path.exists() else ()
    return tuple(kind(**json.loads(line)) for line in lines)
