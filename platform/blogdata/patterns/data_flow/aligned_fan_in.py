"""Aligned Fan-In: a longer period is computed from all of its shorter partitions, once all of them are published.

Problem: a day computed from 23 hours looks like a day with fewer visitors.
How it works: :func:`completeness` compares the partitions a period needs with the published ones. The sensor
`whatever_is_stale` requests a period only when none is missing (`On.ALL_THERE`). A run that a person requests earlier,
e.g. because today's log ends at noon, computes partial figures, with the number of hours they include on every row.
When the missing partitions arrive, the period is stale and runs again. A run computes all partitions of a dataset in
one commit; of a backfill's runs at most five are executed at a time, one for each table.
The trap: an hour without a visit is published and empty; an hour that never landed is missing, even if late rows of it
arrived with another hour. Only the first counts as present.
When not to use it: when the report is due at a deadline, complete or not (Unaligned Fan-In).
Source: Data Engineering Design Patterns, ch. 6.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from blogdata.contract.partitions import Grain, finer


@dataclass(frozen=True, kw_only=True)
class Completeness:
    needed: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def present(self) -> int:
        return len(self.needed) - len(self.missing)

    @property
    def complete(self) -> bool:
        return not self.missing


def completeness(
    periods: Sequence[str], grain: Grain, of: Grain, published: Collection[str]
) -> dict[str, Completeness]:
    present, result = set(published), {}
    for period in periods:
        needed = finer(period, grain, of)
        result[period] = Completeness(needed=needed, missing=tuple(key for key in needed if key not in present))
    return result
