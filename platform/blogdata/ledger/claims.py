"""Claims on partitions (`ops.partition_state`): one owner per partition, until it releases the claim or dies.

A claim is a row of a small Delta table, and taking one is a compare-and-set on its version. A crash needs no cleanup: a
claim whose owner is dead does not count, and the next owner of the partition replaces it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timezone

import pyarrow as pa
from deltalake import DeltaTable

from blogdata.table import arrow
from blogdata.table.faults import TRIES, contended
from blogdata.table.lake import Lake

PARTITION_STATE = "ops.partition_state"
SCHEMA = arrow.schema(
    "dataset STRING NOT NULL, partition STRING NOT NULL, claimed_by STRING NOT NULL, claimed_at TIMESTAMP NOT NULL"
)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The claim of one owner on one partition; the owner's id suffices to check whether it is alive."""

    partition: str
    owner: str
    taken_at: datetime


class Claims:
    def __init__(self, lake: Lake, dataset: str, *, alive: Callable[[Claim], bool]) -> None:
        self._lake = lake
        self._dataset = dataset
        self._alive = alive

    def held(self) -> dict[str, Claim]:
        return {claim.partition: claim for claim in self._read(self._lake.table(PARTITION_STATE)) if self._alive(claim)}

    def take(self, partitions: Collection[str], owner: str) -> list[str]:
        """Claim those of some partitions that no other live owner holds; return them, in order."""
        return self._claim(partitions, owner, free_too=True)

    def renew(self, partitions: Collection[str], owner: str) -> list[str]:
        """Set the time at which claims were taken to now; return those that the owner has not lost, in order."""
        return self._claim(partitions, owner, free_too=False)

    def release(self, partitions: Iterable[str], owner: str) -> None:
        freed = {(owner, key) for key in partitions}
        self._change(lambda claims: {key: claim for key, claim in claims.items() if (claim.owner, key) not in freed})

    def _claim(self, partitions: Collection[str], owner: str, *, free_too: bool) -> list[str]:
        won: list[str] = []

        def change(claims: dict[str, Claim]) -> dict[str, Claim]:
            wanted = sorted(set(partitions))
            won[:] = [key for key in wanted if (claims[key].owner == owner if key in claims else free_too)]
            now = datetime.now(timezone.utc)
            return {**claims, **{key: Claim(partition=key, owner=owner, taken_at=now) for key in won}}

        if partitions:
            self._change(change)
        return won

    def _change(self, change: Callable[[dict[str, Claim]], dict[str, Claim]]) -> None:
        for _ in range(TRIES):
            table = self._lake.table(PARTITION_STATE)
            before = self._read(table)
            claims = change({claim.partition: claim for claim in before if self._alive(claim)})
            if set(claims.values()) == set(before) or self._write(table, claims):
                return
            # Another process committed first: read its claims before claiming again.
            time.sleep(random.uniform(0.005, 0.05))
        raise contended(f"{PARTITION_STATE}, {self._dataset}", "claim partitions or release them")

    def _read(self, table: DeltaTable | None) -> list[Claim]:
        if table is None:
            return []
        rows = table.to_pyarrow_table(filters=[("dataset", "=", self._dataset)]).to_pylist()
        return [Claim(partition=row["partition"], owner=row["claimed_by"], taken_at=row["claimed_at"]) for row in rows]

    def _write(self, table: DeltaTable | None, claims: dict[str, Claim]) -> bool:
        cells = [(self._dataset, claim.partition, claim.owner, claim.taken_at) for claim in claims.values()]
        rows = [dict(zip(SCHEMA.names, row, strict=True)) for row in cells]
        how = {"partition_by": ["dataset"]} if table is None else {"predicate": f"dataset = '{self._dataset}'"}
        return self._lake.put(PARTITION_STATE, pa.Table.from_pylist(rows, schema=SCHEMA), table, **how)
