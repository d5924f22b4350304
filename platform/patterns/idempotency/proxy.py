"""Proxy: every load is a copy that is written once; one stable name shows the newest.

Problem: a job replaces its dataset each time, because readers want the newest state only. Then somebody has to show
what the dataset said in March, who saw it, and that nobody has touched it since.

How it works: each load goes to a table of its own, under a name made from what cannot change: the delivery and the run.
It is audited, closed, and only then does one small commit have the stable name point to it, so a reader sees the old
copy or the new one, never a gap. The pointer remembers which copy was visible from when to when (:func:`history`,
:func:`visible_at`). A retry of the run finds its copy and does not make a second one.

The trap: a promise that copies are immutable, kept by nobody. Here a closed copy is refused by the platform, by Delta
(it is append-only, and what somebody appends is in no version that is read), and, on a file system, by the files'
permissions. None of these stops an administrator. An object store can: have it lock the folder of the copies when they
are written (S3 Object Lock, Azure immutability policies, GCS object holds), for as long as the contract keeps them.

When not to use it: when time travel of one table is enough, for as long as its log and its files are kept; copies cost
the whole dataset each time.

Source: Data Engineering Design Patterns, ch. 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from errors import ConfigurationError
from lake import members
from lake.commit import Commit
from lake.lake import Lake
from lake.members import Member
from patterns.idempotency import audited_members
from patterns.idempotency.audited_members import NewMember
from publish.target import Provenance, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def load(frame: DataFrame, target: Target, provenance: Provenance, *, name: str) -> Commit:
    """Keep a whole dataset as a new immutable copy, and have its stable name show it.

    Args:
        frame: All rows, with the columns of the contract.
        target: The dataset, its contract and the run.
        provenance: Inputs, accounts and landed files.
        name: Of the copy, from attributes that cannot change, such as the day and the digest of what was delivered.

    Returns:
        The commit; ``repeated`` when this run had already published its copy.

    Raises:
        ConfigurationError: The dataset has partitions.
        ConcurrentWrite: Another run's copy became visible meanwhile; transient.
        PlatformError: As `publish`.
    """
    if target.contract.partitioning is not None:
        raise ConfigurationError(
            what="a copy is of a whole dataset, and this one has partitions",
            where=target.contract.dataset,
            next_step="use patterns.idempotency.fast_metadata_cleaner, which keeps a table for each partition",
        )
    seen = members.base(target.lake, target.contract.dataset)
    return audited_members.publish([NewMember(name=name, frame=frame)], target, provenance, seen=seen)


def history(lake: Lake, dataset: str) -> Sequence[Member]:
    """Give every copy a dataset ever showed, with its times, its run and its rows, oldest first; without a JVM.

    Raises:
        NotBehindAPointer: The dataset is one table.
    """
    return members.seen(lake, dataset).all


def visible_at(lake: Lake, dataset: str, moment: datetime) -> Sequence[Member]:
    """Give what a reader of a dataset saw at a time; nothing before its first publication.

    Args:
        lake: The tables' root.
        dataset: Name as `layer.table`.
        moment: The time, aware.

    Raises:
        NotBehindAPointer: The dataset is one table.
    """
    return [
        member
        for member in history(lake, dataset)
        if member.visible_from <= moment and (member.visible_until is None or moment < member.visible_until)
    ]
