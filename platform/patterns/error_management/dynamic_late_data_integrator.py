"""Dynamic Late Data Integrator: exactly the partitions that late rows touched run again, whenever they come.

Problem: a fixed lookback runs days again that nothing changed, and misses the row that came one day later.

How it works: every publication of the receiving dataset keeps, in its commit, how many rows it has for each event
partition; every publication of the integrating dataset keeps which version of the receiving one it has read. An event
partition is behind when some arrival that touches it is newer than that version, or when the rows do not add
up any more. This is the pattern's state table, derived from what was committed, so that it cannot disagree with it:
a run that fails leaves its partition behind, and it is found again. The one thing that is kept beside is who is at
work on a partition (:mod:`evidence.claims`), so that of several runs one integrates it; a claim ends with its
owner, however that ends.

The trap: comparing timestamps of files or of runs. A run that began before an arrival was published and ended
after it has not seen it; the version it read says so.

When not to use it: when integrating costs so much that a few late rows are not worth it; then bound the lookback
(Static Late Data Integrator).

Source: Data Engineering Design Patterns, ch. 3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from lake.commit import Entry

Arrivals = Mapping[str, Entry]


def rows_by_event_partition(arrivals: Arrivals, breakdown: str) -> dict[str, int]:
    """Add up, over all arrivals, the rows each event partition has.

    Args:
        arrivals: Arrival partition to its newest publication.
        breakdown: Name of the breakdown whose first column is the event partition.

    Returns:
        Event partition to its number of rows.
    """
    rows: dict[str, int] = defaultdict(int)
    for entry in arrivals.values():
        for key, count in entry.breakdowns[breakdown].items():
            if key[0] is not None:
                rows[key[0]] += count
    return dict(rows)


@dataclass(frozen=True, kw_only=True)
class PartitionState:
    """One line of the state table.

    Args:
        partition: Event partition.
        updated: Version of the receiving dataset that last touched it; -1 when nothing there does any more.
        processed: Version of the receiving dataset it was computed from; None before the first time.
        rows: Rows it has there now.
        processed_rows: Rows it was computed from.
    """

    partition: str
    updated: int
    processed: int | None
    rows: int
    processed_rows: int

    @property
    def behind(self) -> bool:
        """True when it has, or had, rows that were not seen."""
        return self.processed is None or self.processed < self.updated or self.processed_rows != self.rows


def state(
    arrivals: Arrivals, integrated: Mapping[str, Entry], *, source: str, breakdown: str
) -> dict[str, PartitionState]:
    """Derive the state table.

    Args:
        arrivals: Arrival partition to its newest publication.
        integrated: Event partition to its newest publication.
        source: Name of the receiving dataset.
        breakdown: Name of its breakdown whose first column is the event partition.

    Returns:
        Event partition to its line, in order. An arrival partition that came without a row counts as its own event
        partition: readers see it as empty, not as missing.
    """
    updated: dict[str, int] = defaultdict(lambda: -1)
    for partition, entry in arrivals.items():
        updated[partition] = max(updated[partition], entry.version)
        for key in entry.breakdowns[breakdown]:
            if key[0] is not None:
                updated[key[0]] = max(updated[key[0]], entry.version)
    rows = rows_by_event_partition(arrivals, breakdown)
    return {
        key: PartitionState(
            partition=key,
            updated=updated.get(key, -1),
            processed=integrated[key].inputs[source] if key in integrated else None,
            rows=rows.get(key, 0),
            processed_rows=integrated[key].rows_in if key in integrated else 0,
        )
        for key in sorted({*updated, *integrated})
    }
