"""The one way to write: a frame, or one of Delta's own statements, as one audited commit.

Pattern: Audit-Write-Audit-Publish (:mod:`blogdata.patterns.quality.audit_write_audit_publish`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from blogdata.lake.commit import Commit
from blogdata.publish import publication, tables
from blogdata.publish.changes import AppendBatch, Overwrite
from blogdata.publish.migrations import both, carried
from blogdata.publish.partition_key import check_key
from blogdata.publish.target import Companion, Provenance, Target
from blogdata.publish.write_faults import translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def publish(
    frame: DataFrame,
    target: Target,
    *,
    change: Overwrite | AppendBatch,
    partitions: Sequence[str],
    provenance: Provenance,
    companions: Sequence[Companion] = (),
) -> Commit:
    """Write a frame to a table, audited, in one commit; repeated calls of a run (or stream batch) change nothing.

    Args:
        frame: Rows with the columns of the contract.
        change: How the rows change the table.
        partitions: Partition keys of the batch; empty for a table that is written whole.

    Returns:
        The commit; ``repeated`` when the batch had already been published.

    Raises:
        AuditFailed: Rows broke the contract or the account; nothing was published.
        ConcurrentWrite: Another run published the same partitions meanwhile, or the rows from which a rewrite was
            computed have changed; transient.
    """
    lake = target.lake
    contract = carried(target.contract, lake.caught_up(target.contract.dataset) if target.contract.migrations else None)
    target = replace(target, contract=contract)
    check_key(contract, partitions)
    with translated(contract.dataset, partitions):
        for each in (contract, *(companion.contract for companion in companions)):
            tables.enforce(frame.sparkSession, lake, each)
        rows = both(frame, contract).select(*[f"`{column.name}`" for column in contract.columns])
    return publication.write(rows, target, change, partitions, provenance, companions)


def published(target: Target, partitions: Sequence[str]) -> Commit:
    """Find the commit with which the target's run published a batch.

    Raises:
        PublicationUnknown: The run has not published that batch.
    """
    return publication.receipt(target.lake, target.contract.dataset, publication.commit_id_of(target, partitions), None)
