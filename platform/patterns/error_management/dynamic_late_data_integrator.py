"""Dynamic Late Data Integrator: exactly the partitions that late rows touched run again, whenever they come.

Problem: a fixed lookback runs days again that nothing changed, and misses the row that came one day later.

How it works: every publication of the receiving dataset keeps, in its commit, how many rows it has for each event
partition; every publication of the integrating dataset keeps which version of the receiving one it has read. An event
partition is behind when some arrival that touches it is newer than that version, or when the rows do not add
up any more.
There is no other state: nothing to claim, nothing to clean up after a crash, and a run that fails leaves its
partition behind, so that it is found again.

The trap: comparing timestamps of files or of runs. A run that began before an arrival was published and ended
after it has not seen it; the version it read says so.

When not to use it: when integrating costs so much that a few late rows are not worth it; then bound the lookback
(Static Late Data Integrator).

Source: Data Engineering Design Patterns, ch. 3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from patterns.core.commit import Entry

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


def behind(arrivals: Arrivals, integrated: Mapping[str, Entry], *, source: str, breakdown: str) -> list[str]:
    """Give the event partitions that have, or had, rows which the integrating dataset has not seen.

    Args:
        arrivals: Arrival partition to its newest publication.
        integrated: Event partition to its newest publication.
        source: Name of the receiving dataset.
        breakdown: Name of its breakdown whose first column is the event partition.

    Returns:
        Event partitions in order. An arrival partition that came without a row counts as its own event partition:
        readers see it as empty, not as missing.
    """
    touched: dict[str, int] = defaultdict(lambda: -1)
    for partition, entry in arrivals.items():
        touched[partition] = max(touched[partition], entry.version)
        for key in entry.breakdowns[breakdown]:
            if key[0] is not None:
                touched[key[0]] = max(touched[key[0]], entry.version)
    rows = rows_by_event_partition(arrivals, breakdown)
    return sorted(
        key
        for key in {*touched, *integrated}
        if key not in integrated
        or integrated[key].inputs[source] < touched.get(key, -1)
        or integrated[key].rows_in != rows.get(key, 0)
    )
