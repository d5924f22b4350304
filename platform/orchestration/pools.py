"""Concurrency pools and run priorities: one writer per table, and new data before backfills.

A run that materializes assets takes a slot in the pool of each table it writes; each pool has one slot
(`deploy/dagster.yaml`). Correctness does not depend on pools: they save the retries of conflicting commits. The steps
of the job `refresh` use no pool; they claim each partition instead.
"""

from __future__ import annotations

ARRIVING = {"dagster/priority": "10"}
"""Tags of runs for newly landed data; backfills have no priority tag, so they are dequeued later."""


def pool_of(dataset: str) -> str:
    """Return the pool name of a table."""
    return dataset.replace(".", "_")
