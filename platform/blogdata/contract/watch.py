"""What a dataset's detectors watch: declared on its contract, one spec for each detector that is on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum


class Layer(str, Enum):
    """Where the Flow Interruption Detector looks for new data."""

    METADATA = "metadata"
    """Publications with rows, in the event log."""
    DATA = "data"
    """Newest event times, by the file statistics of the table."""
    STORAGE = "storage"
    """Files in the landing zone."""


@dataclass(frozen=True, kw_only=True)
class Flow:
    """New data comes regularly (Flow Interruption Detector)."""

    every: timedelta | None = None
    """Longest time without data; None: learned from the dataset's own pauses."""
    layer: Layer = Layer.METADATA
    event_time: str | None = None
    """Column of the event time, with file statistics; only for :attr:`Layer.DATA`."""


@dataclass(frozen=True, kw_only=True)
class Skew:
    """Partitions have about as many rows as comparable earlier ones (Skew Detector)."""

    tolerance: float | None = 0.5
    """Largest relative deviation from the expected rows, 0 to 1; twice as many rows count like half as many. None: the
    volume is not compared."""
    among: str | None = None
    """Name of the breakdown whose counts should be about as even as before; None: no keys are compared."""


@dataclass(frozen=True, kw_only=True)
class Lag:
    """The dataset has read what is there (Lag Detector)."""

    within: timedelta | None = None
    """Longest time that input waits to be read; None: the `freshness_hours` of the contract."""


@dataclass(frozen=True, kw_only=True)
class Sla:
    """Partitions are published within the `freshness_hours` of the contract, by usual jobs (SLA Misses Detector)."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """The detectors of a dataset; None: this one is off."""

    flow: Flow | None = None
    skew: Skew | None = None
    lag: Lag | None = None
    sla: Sla | None = None

    @property
    def patterns(self) -> tuple[str, ...]:
        kinds = {"Flow Interruption": self.flow, "Skew": self.skew, "Lag": self.lag, "SLA Misses": self.sla}
        return tuple(f"{kind} Detector" for kind, spec in kinds.items() if spec is not None)
