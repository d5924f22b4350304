"""Computes the rows that a step's partitions must account for: the expected side of the ledger's equation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from blogdata.contract.publication import WHOLE_TABLE, Account, Entry
from blogdata.ledger.events import EventLog
from blogdata.runs.step import InputChanged, Step


def entries(step: Step, dataset: str, partitions: Iterable[str] | None = None, **bounds: Any) -> Mapping[str, Entry]:
    """Return the ledger entries of an input, by partition, at the version the step reads."""
    version = step.pin(dataset)
    published = step.events.publications(dataset, partitions, **bounds)
    newer = sorted(key for key, entry in published.items() if entry.version > version)
    if newer:
        raise InputChanged(
            what=f"{dataset} was published again while the step was starting",
            where=f"{step.contract.dataset}, input partitions {newer[0]}..{newer[-1]}",
            next_step="the step is retried and reads the newer version",
        )
    return published


def same_partition(step: Step, dataset: str) -> dict[str, Account]:
    """Account for a 1:1 read: each partition has the rows of the input partition with the same key."""
    return gathered(step, dataset, lambda key: [key])


def gathered(step: Step, dataset: str, finer: Callable[[str], Iterable[str]]) -> dict[str, Account]:
    """Account for a fan-in: each partition has the rows of all input partitions within it."""
    keys = {partition: tuple(finer(partition)) for partition in step.partitions}
    published = entries(step, dataset, [key for within in keys.values() for key in within])
    return {
        partition: Account(rows_in=sum(published[key].rows_out for key in within if key in published))
        for partition, within in keys.items()
    }


def whole(step: Step, dataset: str, reason: str, measure: str) -> dict[str, Account]:
    """Account for a whole table: it has all rows of the input except those that a measure of the input counts."""
    published = entries(step, dataset).values()
    left_out = sum(int(entry.measures[measure]) for entry in published)
    return {WHOLE_TABLE: Account(rows_in=sum(entry.rows_out for entry in published), reasons={reason: left_out})}


def not_taken_in(events: EventLog, delivered: str, by: str, hours: Iterable[str]) -> set[str]:
    """Find the event hours whose own delivery the dataset `by` has not read yet, for example because it is held."""
    keys = sorted(hours)
    deliveries, taken_in = events.publications(delivered, keys), events.publications(by, keys)
    read = {hour: taken_in[hour].inputs.get(delivered, -1) if hour in taken_in else -1 for hour in deliveries}
    behind = {hour for hour, entry in deliveries.items() if read[hour] < entry.version}
    if not behind:
        return set()
    # An earlier version of the delivery will do: the hour was computed from it, and is computed again from the newest.
    first: dict[str, int] = {}
    for entry in events.history(delivered):
        first.setdefault(entry.partition, entry.version)
    return {hour for hour in behind if read[hour] < first[hour]}
