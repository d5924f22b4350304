"""Static Late Data Integrator: each day's run takes the last N days with it, and what comes later than that is final.

Problem: figures that others settle accounts by must take late rows in for some time, and must not change after it.

How it works: an execution has a lookback window of fixed length before it. Partitions within the window run again,
only those that late rows have touched; older ones are final, and the rows that came too late for them are counted,
not forgotten. A stateless dataset runs its current partition first, because that is what people wait for; a stateful
one runs the late partitions first, because the current one is made of them.

The trap: to replay each of several executions whose windows overlap, as after an outage. The newest one's window covers
what lies between; :func:`collapse` keeps that one.

When not to use it: when figures must be right however late a row comes (Dynamic Late Data Integrator).

Source: Data Engineering Design Patterns, ch. 3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from publish.partitions import Grain, key_of, start_of


@dataclass(frozen=True, kw_only=True)
class Lookback:
    """How far a run looks back.

    Args:
        length: Partitions before the current one that a run takes with it.
        grain: Length of a partition.
        stateful: A partition is computed from the one before it.
    """

    length: int
    grain: Grain
    stateful: bool = False

    def window(self, execution: str) -> tuple[str, ...]:
        """Give the partitions before an execution's own that it takes with it, in order."""
        current = start_of(execution, self.grain)
        return tuple(key_of(current - back * self.grain.length, self.grain) for back in range(self.length, 0, -1))

    def is_final(self, partition: str, execution: str) -> bool:
        """Tell whether a partition lies before the window of an execution."""
        return start_of(partition, self.grain) < start_of(execution, self.grain) - self.length * self.grain.length


def collapse(executions: Iterable[str], lookback: Lookback) -> list[str]:
    """Choose the executions whose replay covers the replay of all: overlapping windows need the newest one only.

    Args:
        executions: Partitions whose runs are to be repeated.
        lookback: The window of each.

    Returns:
        The newest one, and each older one that lies in the window of none that is kept, in order.
    """
    kept: list[str] = []
    for execution in sorted(set(executions), reverse=True):
        if not kept or execution not in lookback.window(kept[-1]):
            kept.append(execution)
    return kept[::-1]


def due(execution: str, touched: Collection[str], lookback: Lookback) -> list[str]:
    """Give what an execution runs, in the order in which it must run.

    Args:
        execution: The current partition.
        touched: Partitions that late rows have touched; those before the window are left alone.
        lookback: The window.

    Returns:
        The current partition and the touched ones of its window.
    """
    late = [partition for partition in lookback.window(execution) if partition in touched]
    return [*late, execution] if lookback.stateful else [execution, *late]


def too_late(
    arrived: Mapping[str, int], integrated: Mapping[str, int], execution: str, lookback: Lookback
) -> dict[str, int]:
    """Count the rows that came after their partition was final.

    Args:
        arrived: Partition to the rows that are there for it now.
        integrated: Partition to the rows it was computed from.
        execution: The newest partition.
        lookback: The window.

    Returns:
        Final partition to the rows it does not have; partitions without any are left out.
    """
    missed = {
        partition: arrived.get(partition, 0) - rows
        for partition, rows in sorted(integrated.items())
        if lookback.is_final(partition, execution)
    }
    return {partition: rows for partition, rows in missed.items() if rows > 0}
