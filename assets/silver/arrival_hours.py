"""What datasets by hour of the event have in common: which hours of arrival they read, and which of them wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blogdata.lake.commit import Entry
from blogdata.orchestration.step import Step
from blogdata.planning.graph import Graph
from blogdata.planning.held import DEAD_LETTERS, held
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.partitions import Grain, key_of, start_of
from quality.contracts import CONTRACTS
from quality.contracts.visits import READ

ARRIVAL_ORDER = ("arrival_hour", "_replay", "source_file", "source_offset")
"""A correction lies in the hour of the line it corrects, but arrived later: `_replay` sorts it last in its hour."""


def require_usable(step: Step) -> None:
    """Refuse hours for which mostly dead letters arrived, unless a person has accepted that."""
    if DEAD_LETTERS in step.accepted:
        return
    waiting = held(Snapshot(step.landing_zone, step.events), Graph(contracts=CONTRACTS), step.contract)
    refused = [hour for hour in step.partitions if hour in waiting]
    if refused:
        fault = waiting[refused[0]]
        fault.partitions = frozenset(refused)
        raise fault


def earliest_arrival(hours: Sequence[str]) -> str:
    """Return the first hour in which events of sorted hours can have arrived: clocks may run slightly ahead."""
    first = start_of(hours[0], Grain.HOUR)
    return key_of(first - Grain.HOUR.length, Grain.HOUR)


def older_hours(above: Mapping[str, Entry]) -> frozenset[str]:
    """Find the hours of arrival without what is found in lines: an older release has published their rows.

    Such rows stay so when those of a person are taken out of them.
    """
    return frozenset(hour for hour, entry in above.items() if not entry.measures.get(READ))
