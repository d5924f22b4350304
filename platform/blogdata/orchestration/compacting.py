"""The maintenance action that compacts the tables of datasets (Compactor)."""

from __future__ import annotations

from dataclasses import replace

from blogdata.lake import members
from blogdata.orchestration.maintenance import BUSY, OWN, Done, Due, Inspection, Upkeep
from blogdata.patterns.ingestion import compactor
from blogdata.planning.finality import lookback_of, newest_ended
from blogdata.publish.contract import Contract
from blogdata.publish.target import Engine
from blogdata.publish.write_faults import ConcurrentWrite


class Compacting:
    """Merges small files; members are written once, whole, and have none."""

    name = "compact"

    def due(self, seen: Inspection, contract: Contract) -> Due | None:
        """Decide whether partitions of a dataset have too many small files."""
        table = None if contract in OWN else seen.lake.caught_up(contract.dataset)
        if table is None or members.is_pointer(table):
            return None
        files = compactor.files(table)
        newest = max((file.partition for file in files), default="")
        found = compactor.due(files, seen.now, is_final=lambda key: _is_final(contract, key, newest))
        if not found:
            return None
        return Due(
            dataset=contract.dataset,
            action=self.name,
            partitions=tuple(one.partition for one in found),
            files=sum(one.files for one in found),
            bytes=sum(one.bytes for one in found),
        )

    def do(self, upkeep: Upkeep, contract: Contract, due: Due) -> Done:
        """Compact those of the partitions that no other run holds; what another run changes meanwhile is left."""
        if upkeep.engine is Engine.CHECKPOINT:
            return Done(due=due, left="without the engine's jar its rows cannot be compared before they are visible")
        with upkeep.claimed(contract, due.partitions) as mine:
            if not mine:
                return Done(due=due, left=BUSY)
            try:
                with upkeep.spark() as spark:
                    compacted = compactor.compact(spark, upkeep.target(contract), mine)
            except ConcurrentWrite as error:
                return Done(due=due, left=error.what)
        if compacted is None:
            return Done(due=due, left="its files are as few as they can be")
        done = replace(due, partitions=tuple(mine), files=compacted.files_before, bytes=compacted.bytes_before)
        return Done(due=done, files=compacted.files, bytes=compacted.bytes)


def _is_final(contract: Contract, key: str, newest: str) -> bool:
    lookback = lookback_of(contract)
    return lookback is None or lookback.is_final(key, newest_ended(newest, lookback.grain))
