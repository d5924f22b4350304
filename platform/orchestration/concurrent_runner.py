"""Concurrent Runner: independent partitions run side by side, up to a limit, and history never delays the present.

Problem: a backfill of a year takes every slot, and the hour that has just landed waits behind it.

How it works: every table is a pool; a run takes a slot of each table it writes, and a pool has as many slots as
writers of that table can work at once. Partitions are separate in Delta, so runs of different partitions
both publish; two runs of one partition conflict, and the loser is retried. Runs of the hourly path carry a priority
above everything else in the queue, so they take the next free slot.

The trap: a pool limits runs, not correctness. Nothing here may be needed for right tables; it is for memory and
fairness.

When not to use it: for datasets that depend on their own past; those run one at a time (Single Runner).

Source: Data Engineering Design Patterns, ch. 6.
"""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

PRIORITY_TAG = "dagster/priority"
ARRIVING = {PRIORITY_TAG: "10"}
"""Tags of runs for data that has just landed."""
LATE = {PRIORITY_TAG: "5"}
"""Tags of runs for late data: after what arrives, before backfills, which have no priority."""


def pool_of(dataset: str) -> str:
    """Give the name of a table's pool."""
    return dataset.replace(".", "_")


def limit(instance: dg.DagsterInstance, slots: Mapping[str, int]) -> None:
    """Set how many runs may write each table at once.

    Args:
        instance: The Dagster instance.
        slots: Dataset to its number of writers; others keep the instance's default.
    """
    for dataset, writers in slots.items():
        instance.event_log_storage.set_concurrency_slots(pool_of(dataset), writers)
