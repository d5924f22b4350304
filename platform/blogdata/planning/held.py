"""Finds held event hours: an arrival they read has too many dead letters, so a person has to decide.

An arrival hour that a person accepted is not held again for the same dead letters. The acceptance is not stored: an
event hour published from the arrival with as many dead letters proves it. An arrival hour that landed again is not
held: it runs first, and that run shows whether the new files are usable. One that has expired holds nothing any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from blogdata.errors.remedies import Remedy, Run
from blogdata.lake.commit import Entry, kept
from blogdata.patterns.error_management import dead_letter
from blogdata.patterns.error_management.dead_letter import TooManyDeadLetters
from blogdata.planning.graph import Graph
from blogdata.planning.reach import EventsOf
from blogdata.publish.contract import Contract, Look

DEAD_LETTERS = "dead_letters"
"""Name of the guard that a person lifts to continue without the rejected rows."""
GOES_ON = Remedy("land the hour again; or go on without them: ", Run(accept=DEAD_LETTERS))
"""The remedy for too many dead letters."""


def held(
    look: Look, graph: Graph, contract: Contract, *, rerunning: Mapping[str, Collection[str]] = MappingProxyType({})
) -> dict[str, TooManyDeadLetters]:
    """Find the event hours of a dataset that are held until a person decides.

    Returns:
        Event hour to the error of an arrival that it has not read yet.
    """
    if contract.runs.judged_by is None:
        return {}
    letters = graph.contracts[contract.runs.judged_by]
    assert letters.max_share is not None
    waiting: dict[str, TooManyDeadLetters] = {}
    for read in contract.reads:
        if not isinstance(read.reach, EventsOf):
            continue
        arrivals = look.published(read.dataset)
        suspect = {
            hour: seen
            for hour, entry in sorted(kept(arrivals).items())
            if hour not in rerunning.get(read.dataset, ())
            and int(entry.measures["dead"]) > letters.max_share * entry.rows_out
            and (seen := _unseen(hour, entry, look.published(contract.dataset), read.dataset, read.reach))
        }
        dead = (
            {one: (int(entry.measures["dead"]), entry.rows_out) for one, entry in arrivals.items()} if suspect else {}
        )
        for hour, seen in suspect.items():
            if (fault := dead_letter_error(letters, hour, dead)) is None:
                continue
            for event_hour, version in seen.items():
                if not _accepted(look.history(read.dataset), arrivals[hour], version):
                    waiting.setdefault(event_hour, fault)
    return waiting


def dead_letter_error(
    letters: Contract, part: str, rejected: Mapping[str, tuple[int, int]]
) -> TooManyDeadLetters | None:
    assert letters.max_share is not None
    assert letters.partitioning is not None
    return dead_letter.error_for_partition(
        part,
        rejected,
        max_share=letters.max_share,
        dataset=letters.dataset,
        column=letters.partitioning.column,
        then=GOES_ON,
    )


def _unseen(
    arrival: str, entry: Entry, integrated: Mapping[str, Entry], source: str, reach: EventsOf
) -> dict[str, int]:
    """Map the event hours that have not read this version of an arrival to the version they read; -1 if none."""
    touched = {arrival, *(hour for hour, *_ in entry.breakdowns[reach.breakdown] if hour is not None)}
    seen = {hour: integrated[hour].inputs[source] if hour in integrated else -1 for hour in touched}
    return {hour: version for hour, version in seen.items() if version < entry.version}


def _accepted(history: Sequence[Entry], entry: Entry, version: int) -> bool:
    """Return whether the arrival, at the version that was read, already had as many dead letters."""
    before = [one for one in history if one.partition == entry.partition and one.version <= version]
    return bool(before) and int(before[-1].measures["dead"]) >= int(entry.measures["dead"])
