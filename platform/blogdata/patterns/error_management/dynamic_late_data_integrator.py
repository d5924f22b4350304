"""Dynamic Late Data Integrator: exactly the partitions that late rows touched run again, whenever they come.

Problem: a fixed lookback re-runs days that did not change, and misses a row that arrives one day later.
How it works: every publication of the receiving dataset records in its commit the row count of each event partition;
every publication of the integrating dataset records the version that it read. An event partition is stale when an
arrival that touches it is newer than that version, or when the row counts differ. This state table (:func:`state`) is
derived from the commits, so a failed run leaves its partition stale. Only the claim on a partition
(:mod:`blogdata.ledger.claims`) is stored separately; it ends with its owner, even if the owner crashes. Sessions and
counts, of which a late row costs a whole hour or day, take those of earlier days once a day
(:func:`blogdata.planning.reach.due_versions`).
The trap: comparing timestamps of files or of runs. A run that began before an arrival was published and ended after it
has not seen the arrival; only the version that it read shows this.
When not to use it: when integrating costs so much that a few late rows are not worth it; then bound the lookback
(Static Late Data Integrator).
Source: "Data Engineering Design Patterns", ch. 3.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from blogdata.contract.publication import Entry

Arrivals = Mapping[str, Entry]


def later_arrivals(
    arrivals: Arrivals, integrated: Mapping[str, Entry], *, source: str, breakdown: str, until: int
) -> dict[str, list[str]]:
    """Find the event partitions that lack nothing but rows of later arrivals, each with these, sorted."""
    later = {}
    by_arrival: dict[str, Counter[str]] = defaultdict(Counter)
    for arrival, key, count in _counts(arrivals, breakdown):
        if key in integrated:
            by_arrival[key][arrival] += count
    for key, rows in by_arrival.items():
        seen = integrated[key].inputs.get(source, -1)
        old = [arrival for arrival in rows if arrivals[arrival].version <= seen]
        new = sorted(rows.keys() - set(old))
        # An arrival that was read, and has changed or gone since, is missing from the sum.
        unchanged = sum(rows[arrival] for arrival in old) == integrated[key].rows_in
        in_order = bool(new) and max(old, default="") < new[0]
        if unchanged and in_order and all(arrivals[arrival].version <= until for arrival in new):
            later[key] = new
    return later


def _counts(arrivals: Arrivals, breakdown: str) -> Iterator[tuple[str, str, int]]:
    """Give the arrival, the event partition and the number of each count; rows without an event time are left out."""
    for arrival, entry in arrivals.items():
        for (key, *_), count in entry.breakdowns[breakdown].items():
            if key is not None:
                yield arrival, key, count


@dataclass(frozen=True, kw_only=True)
class PartitionState:
    partition: str
    updated: int
    """Version of the receiving dataset that last touched it; -1 when no arrival touches it any more."""
    processed: int | None
    """Version of the receiving dataset it was computed from; None before the first run."""
    rows: int
    processed_rows: int

    @property
    def behind(self) -> bool:
        """Whether it is stale: never computed, touched since, or computed from another number of rows."""
        return self.processed is None or self.processed < self.updated or self.processed_rows != self.rows


def state(
    arrivals: Arrivals, integrated: Mapping[str, Entry], *, source: str, breakdown: str
) -> dict[str, PartitionState]:
    """Derive the state table, sorted; an arrival partition without rows is in it: it is empty, not missing."""
    updated, rows = {partition: entry.version for partition, entry in arrivals.items()}, Counter[str]()
    for arrival, key, count in _counts(arrivals, breakdown):
        updated[key] = max(updated.get(key, -1), arrivals[arrival].version)
        rows[key] += count
    return {
        key: PartitionState(
            partition=key,
            updated=updated.get(key, -1),
            processed=integrated[key].inputs[source] if key in integrated else None,
            rows=rows[key],
            processed_rows=integrated[key].rows_in if key in integrated else 0,
        )
        for key in sorted({*updated, *integrated})
    }
