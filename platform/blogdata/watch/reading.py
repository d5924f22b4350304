"""What a detector measured of a dataset, against its bound; the common result of all detectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from blogdata.errors.remedies import Remedy

FLOW = "flow"
SKEW = "skew"
LAG = "lag"
SLA = "sla"
QUIET = "quiet"
UNKNOWN = "unknown"
_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One measurement of one detector, in seconds, or a ratio for skew."""

    detector: str
    dataset: str
    value: float
    bound: float
    verdict: str = QUIET
    what: str = ""
    """What is wrong, or why it is unknown, without a full stop; empty if nothing is wrong."""
    remedy: Remedy = field(default_factory=Remedy)
    partitions: Sequence[str] = ()
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def stands(self) -> bool:
        return self.verdict not in (QUIET, UNKNOWN)


def unknown(detector: str, dataset: str, why: str) -> Reading:
    return Reading(detector=detector, dataset=dataset, value=0.0, bound=0.0, verdict=UNKNOWN, what=why)


def first(names: Sequence[str]) -> str:
    """Name the first few of some partitions, and count the others."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def span(seconds: float) -> str:
    """Write a duration in the largest unit of which it has at least two."""
    for unit, length in (("years", 31_557_600), ("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"
