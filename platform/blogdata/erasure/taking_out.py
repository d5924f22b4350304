"""Takes persons out of what nothing computes again, before the rest is computed again.

A stream is held meanwhile. Whatever it takes in later is erased where it landed, so nothing of the persons comes after
their rows are gone, from its state neither: a stream that remembers them begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blogdata.erasure import current_rows
from blogdata.erasure.cleared import Cleared, Note
from blogdata.erasure.current_rows import Rows
from blogdata.erasure.traces import stream_state
from blogdata.erasure.traces.older_files import alone
from blogdata.evidence.appended import appended
from blogdata.lake.lake import Lake
from blogdata.orchestration import owners, turns
from blogdata.orchestration.maintenance import BUSY
from blogdata.planning.observed import StreamedInput
from blogdata.planning.reach import landed_input
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.contract import Contract
from blogdata.publish.run import RunContext
from blogdata.publish.target import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class TakingOut:
    """Takes rows of persons out of tables.

    Args:
        spark: Opens the Spark session; called only if there are rows.
    """

    rows: Rows
    run: RunContext
    engine: Engine
    spark: Callable[[], AbstractContextManager[SparkSession]]
    note: Note

    def of_dataset(self, contract: Contract, partitions: Collection[str] | None = None) -> Cleared:
        """Take the rows out of a dataset, unless another run publishes it.

        Args:
            partitions: Only these partitions; None for all published ones.
        """
        place = f"current rows of {contract.dataset}"
        with alone(self.rows.lake, self.rows.events, contract) as since:
            if since is None:
                return Cleared(place=place, left=BUSY)
            found = self.rows.of(contract, partitions)
            if found is None:
                return Cleared(place=place)
            self.note(done := Cleared(place=place, rows=found.num_rows))
            with self.spark() as spark:
                current_rows.take_out(spark, self.rows, found, contract, self.run, self.engine)
        return done

    def of_stream(self, stream: StreamedInput) -> Iterator[Cleared]:
        """Take the rows out of the datasets of a stream, and its state if it has values; never while it is running."""
        lake, place = self.rows.lake, f"stream {stream.name}"
        claims, owner = turns.claims(lake, place), owners.this_run()
        if not claims.take([stream.name], owner):
            yield Cleared(place=place, left="it is running: stop it first")
            return
        try:
            if _is_cut_off(lake, stream.contracts):
                yield Cleared(place=place, left="a batch of it was cut off: run the stream once, which completes it")
                return
            for contract in stream.contracts.values():
                yield self.of_dataset(contract)
            folder = stream.checkpoints / stream.name
            if stream_state.remembers(folder, self.rows.persons):
                self.note(done := stream_state.forgotten(stream.name, folder))
                stream_state.remove(folder)
                yield done
        finally:
            claims.release([stream.name], owner)


def _is_cut_off(lake: Lake, datasets: Iterable[str]) -> bool:
    """Return whether the newest batch is in some datasets of a stream only: its account counts rows as they were."""
    newest = (next(appended(lake, name), None) for name in datasets)
    batches = {(one.info["appended"]["stream"], one.info["appended"]["batch"]) for one in newest if one is not None}
    return len(batches) > 1


def without_landed_files(look: Snapshot, landed: Iterable[Contract]) -> dict[str, list[str]]:
    """Find the published partitions that cannot be computed again, since their landed files are gone.

    Returns:
        Dataset to keys of the partitions, of datasets with persons only.
    """
    found = {}
    for contract in landed:
        source = landed_input(contract)
        if source is not None and any(column.subject for column in contract.columns):
            # Not what has a folder: who clears up by the age of files leaves empty ones.
            there = {partition.key for partition in look.landed(source.table, source.grain)}
            published = look.published(contract.dataset)
            found[contract.dataset] = [key for key, entry in published.items() if key not in there and entry.rows_out]
    return {dataset: keys for dataset, keys in found.items() if keys}
