"""Proxy: every load is an immutable copy; one stable name shows the newest.

Problem: a job replaces its dataset each time. Then an audit asks what the dataset contained in March, who saw it, and
for proof that it was not changed since.
How it works: each load is written to a table of its own, whose name is derived from immutable attributes: the delivery
and the run (:func:`load`). It is audited and closed. Only then does one small commit point the stable name to it, so a
reader sees the old copy or the new one. The pointer records when each copy was visible (:func:`history`). A retry of
the run finds its copy and does not write a second one.
The trap: copies that are declared immutable, but not enforced to be. Here the platform refuses to write to a closed
copy. So does Delta: the copy is append-only, and appended rows are in no version that is read. Neither stops the owner
of the files.
When not to use it: when time travel of one table is enough, i.e. while its log and its files are kept; each copy costs
the storage of the whole dataset.
Source: "Data Engineering Design Patterns", ch. 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blogdata.contract.publication import Commit
from blogdata.patterns.idempotency import fast_metadata_cleaner
from blogdata.patterns.idempotency.fast_metadata_cleaner import NewMember
from blogdata.table import members
from blogdata.table.lake import Lake
from blogdata.table.members import Member
from blogdata.table.target import Provenance, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def load(frame: DataFrame, target: Target, provenance: Provenance, *, name: str) -> Commit:
    """Write a whole dataset as a new immutable copy, and point its stable name to it."""
    assert target.contract.partitioning is None, "use the Fast Metadata Cleaner, which keeps a table for each partition"
    seen = members.seen(target.lake, target.contract.dataset)
    return fast_metadata_cleaner.publish_members(
        [NewMember(name=name, frame=frame)], target, provenance, planned_from=seen
    )


def history(lake: Lake, dataset: str) -> Sequence[Member]:
    """List all copies that were ever visible, with their times, runs and row counts, oldest first; without a JVM."""
    return members.seen(lake, dataset).all
