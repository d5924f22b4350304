"""Records permanently failed partitions in the event log; a fault counts until its inputs change or a run succeeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.ledger.events import Event, EventLog

FAULT = "fault"
_TEXTS = ("what", "where", "next_step")


Fault = tuple[str, PlatformError]
"""The input state that a partition lacked, and why it failed."""


def input_not_published(dataset: str, keys: Sequence[str], above: Sequence[str]) -> PlatformError:
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    error = PlatformError(
        what=f"nothing of {', '.join(above)} has been published for {', '.join(keys[:3])}{more}",
        where=dataset,
        next_step=Remedy(f"materialize {above[0]} for them first, or run: ", Run()),
    )
    error.partitions = frozenset(keys)
    return error


def by_reason(failed: Mapping[str, PlatformError]) -> dict[str, dict[str, PlatformError]]:
    """Group partitions by the text of their error, in the order in which the errors come."""
    reasons: dict[str, dict[str, PlatformError]] = {}
    for key, error in failed.items():
        reasons.setdefault(str(error), {})[key] = error
    return reasons


def record(events: EventLog, dataset: str, failed: Mapping[str, PlatformError], states: Mapping[str, str]) -> None:
    """Record the failed partitions that were stale in the event log, each with the input state that it lacked."""
    events.append(
        [
            Event(
                kind=FAULT,
                dataset=dataset,
                partition=key,
                payload={"state": states[key], **{name: getattr(error, name) for name in _TEXTS}},
            )
            for key, error in failed.items()
            if key in states
        ]
    )


def newest_by_partition(events: EventLog, dataset: str) -> dict[str, Fault]:
    faults: dict[str, Fault] = {}
    for event in events.notes(FAULT, dataset=dataset):
        assert event.partition is not None
        assert event.payload is not None
        error = PlatformError(**{name: event.payload[name] for name in _TEXTS})
        faults[event.partition] = event.payload["state"], error
    return faults
