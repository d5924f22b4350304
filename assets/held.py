"""Event hours that wait for a person: most of what came for them are dead letters, so the input is at fault.

An hour of arrival that was accepted once is not judged again for the same dead letters: to be published from it was
the person's word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestration.shares import GOES_ON
from patterns.core.commit import Entry
from patterns.core.events import EventLog
from patterns.error_management import dead_letter
from patterns.error_management.dead_letter import TooManyDeadLetters
from quality.contracts import CONTRACTS

_LETTERS = CONTRACTS["bronze.dead_letters"]
_SOURCE = "bronze.visits"
HELD = "silver.visits"
"""Whose hours may wait for a person."""


def held_hours(events: EventLog) -> dict[str, TooManyDeadLetters]:
    """Give the event hours that silver.visits does not compute before a person has looked, each with the reason."""
    return held(events, events.publications(_SOURCE), events.publications(HELD))


def held(
    events: EventLog, arrivals: Mapping[str, Entry], integrated: Mapping[str, Entry]
) -> dict[str, TooManyDeadLetters]:
    """Give the event hours that wait for a person.

    Args:
        events: The event log.
        arrivals: Hour of arrival to its newest publication of bronze.visits; those that may hold something.
        integrated: Event hour to its newest publication of silver.visits.

    Returns:
        Event hour to what is wrong with an arrival that it has not seen.
    """
    assert _LETTERS.max_share is not None
    suspect = {
        hour: entry
        for hour, entry in sorted(arrivals.items())
        if int(entry.measures["dead"]) > _LETTERS.max_share * entry.rows_out
    }
    unseen = {hour: found for hour, entry in suspect.items() if (found := _unseen(hour, entry, integrated))}
    if not unseen:
        return {}
    history = events.history(_SOURCE)
    letters = {
        hour: (int(entry.measures["dead"]), entry.rows_out) for hour, entry in events.publications(_SOURCE).items()
    }
    waiting: dict[str, TooManyDeadLetters] = {}
    for hour, seen in unseen.items():
        fault = dead_letter.too_many(
            hour, letters, max_share=_LETTERS.max_share, dataset=_LETTERS.dataset, then=GOES_ON
        )
        if fault is None:
            continue
        for event_hour, version in seen.items():
            if not _accepted(history, suspect[hour], version):
                waiting.setdefault(event_hour, fault)
    return waiting


def _unseen(arrival: str, entry: Entry, integrated: Mapping[str, Entry]) -> dict[str, int]:
    """Give the event hours which an arrival touches and which have not seen it, with the version they have seen."""
    touched = {arrival, *(hour for hour, *_ in entry.breakdowns["event_hours"] if hour is not None)}
    seen = {hour: integrated[hour].inputs[_SOURCE] if hour in integrated else -1 for hour in touched}
    return {hour: version for hour, version in seen.items() if version < entry.version}


def _accepted(history: Sequence[Entry], entry: Entry, version: int) -> bool:
    """Tell whether what was seen of an arrival had as many dead letters already."""
    before = [one for one in history if one.partition == entry.partition and one.version <= version]
    return bool(before) and int(before[-1].measures["dead"]) >= int(entry.measures["dead"])
