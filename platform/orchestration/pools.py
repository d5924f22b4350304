"""Which runs wait for others: every table is a pool of one writer, and what has just landed goes before backfills.

A run that materializes assets takes a slot of the pool of each table it writes; Dagster has one slot for each pool
(`deploy/dagster.yaml`). Nothing here is needed for right tables: it spares runs the retry after they have lost against
each other. The steps of the job `refresh` are in no pool: each partition is claimed instead.
"""

from __future__ import annotations

ARRIVING = {"dagster/priority": "10"}
"""Tags of runs for data that has just landed; backfills have no priority, and are taken from the queue after these."""


def pool_of(dataset: str) -> str:
    """Give the name of a table's pool."""
    return dataset.replace(".", "_")
