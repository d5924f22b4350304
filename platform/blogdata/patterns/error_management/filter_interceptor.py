"""Filter Interceptor: every filter has a name, and says how many rows it removed.

Problem: a job that keeps 5 % of its rows looks like one that keeps 95 %; the engine fuses all conditions into
one step and its plan counts them together.
How it works: the filters become one CASE that names the first filter that removes a row (:func:`first_match`). The
rows are counted by that name in the pass that writes them, like any measure of a dataset, and its readers skip them.
No accumulator, because retried tasks would count twice. The dataset's check `filters` compares each share with those
of the preceding partitions. In the lineage only lines of access logs are filtered: what a line shows by itself is
named by its reader, and the CASE names what takes the lines around it.
The trap: a condition that is null removes nothing under CASE, but would remove the row under `WHERE NOT`.
Here only true removes.
When not to use it: for rows that are *wrong*; those are dead letters and keep all their reasons.
Source: "Data Engineering Design Patterns", ch. 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blogdata.lake.commit import Entry

if TYPE_CHECKING:
    from pyspark.sql import Column

REASON = "filtered."
"""Prefix of a filter's name in the reasons of an account."""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A named reason to leave a row out."""

    name: str
    removes: Column


def first_match(filters: Sequence[Filter]) -> Column:
    """Build the Column with the name of the first filter that removes the row; null if none does."""
    from pyspark.sql import functions as F

    chain = F.when(filters[0].removes, F.lit(filters[0].name))
    for one in filters[1:]:
        chain = chain.when(one.removes, F.lit(one.name))
    return chain


def shares(entries: Mapping[str, Entry]) -> dict[str, float]:
    """Compute the share of input rows (0 to 1) that each filter removed; empty when there were no rows."""
    rows = sum(entry.rows_in for entry in entries.values())
    removed: dict[str, int] = {}
    for entry in entries.values():
        for reason, count in entry.reasons.items():
            if reason.startswith(REASON):
                name = reason.removeprefix(REASON)
                removed[name] = removed.get(name, 0) + count
    return {name: count / rows for name, count in sorted(removed.items())} if rows else {}
