"""Event hours that wait for a person: most of what came for them are dead letters, so the input is at fault.

An hour of arrival that was accepted once is not judged again for the same dead letters: to be published from it was
the person's word. One that has landed again waits for its run and not for a person: that run shows whether what has
landed now can be used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from lake.commit import Entry
from patterns.error_management import dead_letter
from patterns.error_management.dead_letter import TooManyDeadLetters
from planning.graph import Graph
from planning.reach import EventsOf
from publish.contract import Contract, Look

DEAD_LETTERS = "dead_letters"
"""The guard that a person lifts to go on without what was rejected."""
GOES_ON = f"land the hour again; or go on without them: blogdata run --accept {DEAD_LETTERS}"
"""What to do about too many dead letters."""


def held(
    look: Look, graph: Graph, contract: Contract, *, anew: Mapping[str, Collection[str]] = MappingProxyType({})
) -> dict[str, TooManyDeadLetters]:
    """Find the event hours of a dataset that wait for a person.

    Args:
        look: What is published.
        graph: The lineage.
        contract: Of the dataset; none of its hours wait when it is not judged by dead letters.
        anew: Dataset to partitions that are computed before it, from other content: they hold nothing.

    Returns:
        Event hour to what is wrong with an arrival that it has not seen.
    """
    if contract.runs.judged_by is None:
        return {}
    letters = graph.contracts[contract.runs.judged_by]
    return {
        hour: fault
        for read in contract.reads
        if isinstance(read.reach, EventsOf)
        for hour, fault in _held(look, letters, read.dataset, contract.dataset, anew.get(read.dataset, ())).items()
    }


def too_many(letters: Contract, part: str, rejected: Mapping[str, tuple[int, int]]) -> TooManyDeadLetters | None:
    """Say whether a partition has too many dead letters for anything to be made of it.

    Args:
        letters: Contract of the dataset that holds dead letters and nothing else; it has a `max_share`, and partitions.
        part: The partition.
        rejected: Dead letters and all rows of it, and of those before it.
    """
    assert letters.max_share is not None
    assert letters.partitioning is not None
    return dead_letter.too_many(
        part,
        rejected,
        max_share=letters.max_share,
        dataset=letters.dataset,
        column=letters.partitioning.column,
        then=GOES_ON,
    )


def _held(
    look: Look, letters: Contract, source: str, dataset: str, anew: Collection[str]
) -> dict[str, TooManyDeadLetters]:
    assert letters.max_share is not None
    integrated, arrivals = look.published(dataset), look.published(source)
    suspect = {
        hour: entry
        for hour, entry in sorted(arrivals.items())
        if hour not in anew and int(entry.measures["dead"]) > letters.max_share * entry.rows_out
    }
    unseen = {hour: found for hour, entry in suspect.items() if (found := _unseen(hour, entry, integrated, source))}
    if not unseen:
        return {}
    history = look.history(source)
    rejected = {hour: (int(entry.measures["dead"]), entry.rows_out) for hour, entry in arrivals.items()}
    waiting: dict[str, TooManyDeadLetters] = {}
    for hour, seen in unseen.items():
        fault = too_many(letters, hour, rejected)
        if fault is None:
            continue
        for event_hour, version in seen.items():
            if not _accepted(history, suspect[hour], version):
                waiting.setdefault(event_hour, fault)
    return waiting


def _unseen(arrival: str, entry: Entry, integrated: Mapping[str, Entry], source: str) -> dict[str, int]:
    """Give the event hours which an arrival touches and which have not seen it, with the version they have seen."""
    touched = {arrival, *(hour for hour, *_ in entry.breakdowns["event_hours"] if hour is not None)}
    seen = {hour: integrated[hour].inputs[source] if hour in integrated else -1 for hour in touched}
    return {hour: version for hour, version in seen.items() if version < entry.version}


def _accepted(history: Sequence[Entry], entry: Entry, version: int) -> bool:
    """Tell whether what was seen of an arrival had as many dead letters already."""
    before = [one for one in history if one.partition == entry.partition and one.version <= version]
    return bool(before) and int(before[-1].measures["dead"]) >= int(entry.measures["dead"])
