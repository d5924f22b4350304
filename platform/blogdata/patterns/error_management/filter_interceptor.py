"""Filter Interceptor: every filter has a name, and says how many rows it removed.

Problem: a job that keeps 5 % of its rows looks like one that keeps 95 %; the engine fuses all conditions into one step
and its plan counts them together.
How it works: the reader of a line names the first filter that removes it (:func:`first_match`), and the row is written
with this name. The rows are counted by it in the pass that writes them, and readers of the dataset skip them. The
dataset's check `filters` compares each share with those of the preceding partitions. In the lineage requests of access
logs are filtered; only crawlers by behaviour are known from other lines than their own.
The trap: an accumulator, which counts retried tasks twice. And the order: a row counts for the first filter that
removes it, so a new filter in front lowers the shares of those behind it.
When not to use it: for rows that are *wrong*; those are dead letters and keep all their reasons.
Source: "Data Engineering Design Patterns", ch. 3.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from blogdata.contract.publication import Entry

Item = TypeVar("Item")
Filter = tuple[str, Callable[[Item], bool]]
"""A name, and whether it removes an item."""
REASON = "filtered."
"""Prefix of a filter's name in the reasons of an account."""


def first_match(filters: Iterable[Filter[Item]], item: Item) -> str | None:
    """Return the name of the first filter that removes something; None if none does."""
    return next((name for name, removes in filters if removes(item)), None)


def shares(entries: Mapping[str, Entry]) -> dict[str, float]:
    """Compute the share of input rows (0 to 1) that each filter removed; empty when there were no rows."""
    rows = sum(entry.rows_in for entry in entries.values())
    removed = Counter[str]()
    for entry in entries.values():
        for reason, count in entry.reasons.items():
            if reason.startswith(REASON):
                removed[reason.removeprefix(REASON)] += count
    return {name: count / rows for name, count in sorted(removed.items())} if rows else {}
