"""Static Late Data Integrator: each day's run takes the last N days with it, and what comes later than that is final.

Problem: figures that are used for settlement must include late rows for some time, and must not change after it.
How it works: an execution has a lookback window of fixed length before it (:func:`due`; after an outage that of the
newest one). Within it only partitions that late rows have touched run again; older ones are final, and rows that arrive
too late for them are counted. All are computed in one commit. If they have too many rows for that, :func:`run_order`
decides: the newest first, because users wait for it; but where a partition continues from the one before it, the oldest
first.
The trap: replaying each of several executions whose windows overlap, as after an outage. Each run computes what is
stale when it starts, so the first leaves nothing to the others.
When not to use it: when figures must be right however late a row comes (Dynamic Late Data Integrator).
Source: "Data Engineering Design Patterns", ch. 3.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from blogdata.contract.partitions import Grain, start_of


@dataclass(frozen=True, kw_only=True)
class Lookback:
    length: int
    grain: Grain

    def is_final(self, partition: str, execution: str) -> bool:
        return start_of(partition, self.grain) < start_of(execution, self.grain) - self.length * self.grain.length


def due(execution: str, touched: Collection[str], lookback: Lookback) -> set[str]:
    """Choose the partitions that an execution runs: the current one, and the touched ones of its window."""
    return {execution, *(key for key in touched if key < execution and not lookback.is_final(key, execution))}


def run_order(partitions: Iterable[str], *, stateful: bool) -> list[str]:
    """Put partitions that cannot be computed together in order: the oldest first if stateful, else the newest."""
    return sorted(partitions, reverse=not stateful)


def too_late(
    arrived: Mapping[str, int], integrated: Mapping[str, int], execution: str, lookback: Lookback
) -> dict[str, int]:
    """Count the rows that arrived after their partition was final, by partition; those without any are left out."""
    return {
        key: missed
        for key, rows in sorted(integrated.items())
        if lookback.is_final(key, execution) and (missed := arrived.get(key, 0) - rows) > 0
    }
