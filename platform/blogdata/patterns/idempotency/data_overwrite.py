"""Data Overwrite: a partition is replaced whole, so running again, in any order, gives the same table.

Problem: a retried or backfilled job that appends stores its rows twice.
How it works: the rows of exactly the declared partitions, or of the whole table, are replaced in one commit
(:func:`overwrite_partitions`, :func:`overwrite_table`). Rows of other partitions are refused, so a wrong window does
not delete neighbouring partitions. A partition may also be written in slices
(:class:`blogdata.contract.writes.Slices`): rows are added to it in the same commit, and its audit reads all of its
rows, so the result is the same as if it were replaced. The write is refused if the table has changed since it was read.
The trap: an empty input must be written, too. A partition that no longer has rows is emptied, not skipped.
When not to use it: for slowly changing rows spread over the whole table, where a Merger touches fewer files.
Source: "Data Engineering Design Patterns", ch. 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blogdata.contract.publication import Commit
from blogdata.table.publish import publish
from blogdata.table.target import Companion, Extend, Overwrite, Provenance, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def overwrite_partitions(
    frame: DataFrame,
    target: Target,
    partitions: Sequence[str],
    provenance: Provenance,
    *,
    companions: Sequence[Companion] = (),
) -> Commit:
    """Replace some partitions by a frame; those of the provenance's `additions` keep the rows they have."""
    assert target.contract.partitioning is not None, "use overwrite_table for a table without partitions"
    assert partitions, "name at least one partition"
    added, keys = provenance.additions, sorted(set(partitions))
    change = Extend(kept=tuple(sorted(added.of)), at=added.at) if added.of else Overwrite()
    return publish(frame, target, change=change, partitions=keys, provenance=provenance, companions=companions)


def overwrite_table(frame: DataFrame, target: Target, provenance: Provenance) -> Commit:
    """Replace a whole unpartitioned table by a frame, audited and in one commit."""
    assert target.contract.partitioning is None, "use overwrite_partitions and name the partitions"
    return publish(frame, target, change=Overwrite(), partitions=(), provenance=provenance)
