"""Filter Interceptor: every filter has a name, and says how many rows it removed.

Problem: a job that keeps 5 % of its rows looks like one that keeps 95 %; the engine fuses all conditions into one step
and its plan counts them together.
How it works: what reads a line names the first filter that removes it (:func:`first_match`), and the row is written
with this name. The rows are counted by it in the pass that writes them, like any measure of a dataset, and its readers
skip them. The dataset's check `filters` compares each share with those of the preceding partitions. In the lineage
requests of access logs are filtered; only who acts like a crawler is known from other lines than their own.
The trap: an accumulator, which counts retried tasks twice. And the order: a row counts for the first filter that
removes it, so one that comes in front takes rows from those behind it, whose shares fall although nothing has changed.
When not to use it: for rows that are *wrong*; those are dead letters and keep all their reasons.
Source: "Data Engineering Design Patterns", ch. 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from blogdata.contract.publication import Entry

Item = TypeVar("Item")
REASON = "filtered."
"""Prefix of a filter's name in the reasons of an account."""


@dataclass(frozen=True, kw_only=True)
class Filter(Generic[Item]):
    name: str
    removes: Callable[[Item], bool]


def first_match(filters: Iterable[Filter[Item]], item: Item) -> str | None:
    """Return the name of the first filter that removes something; None if none does."""
    return next((it.name for it in filters if it.removes(item)), None)


def shares(entries: Mapping[str, Entry]) -> dict[str, float]:
    """Compute the share of input rows (0 to 1) that each filter removed; empty when there were no rows."""
    rows = sum(entry.rows_in for entry in entries.values())
    removed = Counter[str]()
    for entry in entries.values():
        for reason, count in entry.reasons.items():
            if reason.startswith(REASON):
                removed[reason.removeprefix(REASON)] += count
    return {name: count / rows for name, count in sorted(removed.items())} if rows else {}
