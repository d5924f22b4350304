"""Transactional Writer: what belongs together appears together, or not at all.

Problem: a job writes a fact and what goes with it (rejected rows, an audit, pending state), and dies between the two.
Readers see the one without the other, and a retry adds to the half that is there.

How it works: of several tables, one is the main one, and its commit is the commit of all. :func:`overwrite_together`
writes and audits the files of the companions while the transaction of the main table is open; how many rows they must
have is measured in the main table's own files. The commit names these files. A companion's log follows the main
table's (`core.companions`): whoever opens it, be it this writer, the ledger or a query, first makes it say what the
main table's newest commit says. The batch is published once per run (`txnAppId`), and followed once (the version of
the main table is the companion's `txnVersion`). A version of a companion belongs to a version of its main table
(`companions.version_with`). A database has such transactions itself; :mod:`patterns.idempotency.transactional_sink`
uses them.

The trap: two commits in the right order. A crash between them leaves readers a mixture, and two runs of different
partitions leave a version of the second table that belongs to no version of the first. Another one: the transaction
makes one run all or nothing, no more. That a second run of the same partition replaces what the first left is Data
Overwrite's doing.

When not to use it: for tables that are merely computed from each other. Readers of the companion by other means than
this platform's see it a moment after its main table, never before it.

Source: Data Engineering Design Patterns, ch. 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from errors import ConfigurationError
from lake.commit import Commit
from patterns.idempotency.data_overwrite import overwrite_partitions
from patterns.quality.audit_write_audit_publish import published
from publish.target import Companion, Provenance, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class Together:
    """What one commit published.

    Args:
        main: Of the main table.
        companions: Dataset to what its log says of the same batch.
    """

    main: Commit
    companions: Mapping[str, Commit]

    @property
    def commits(self) -> dict[str, Commit]:
        """All of them, by dataset, the main table first."""
        return {self.main.dataset: self.main, **self.companions}


def overwrite_together(
    frame: DataFrame,
    target: Target,
    partitions: Sequence[str],
    provenance: Provenance,
    *,
    companions: Sequence[Companion],
) -> Together:
    """Replace some partitions of several tables, audited and in one commit.

    Args:
        frame: Rows of the main table, of these partitions only.
        target: The main table, its contract and the run.
        partitions: Partition keys; a key without rows ends up empty.
        provenance: Inputs and accounts of the main table.
        companions: What appears with it.

    Returns:
        What was published.

    Raises:
        ConfigurationError: A companion is not declared as one, or not partitioned like the main table.
        PlatformError: As `publish`; nothing of any table was published.
    """
    main = target.contract
    for companion in companions:
        contract = companion.contract
        if contract.appears_with != main.dataset or contract.partitioning != main.partitioning:
            raise ConfigurationError(
                what=f"{contract.dataset} does not appear with {main.dataset}",
                where=f"contract of {contract.dataset}",
                next_step=f"declare write=AppearsWith(main='{main.dataset}') and the same partitioning",
            )
    commit = overwrite_partitions(frame, target, partitions, provenance, companions=companions)
    keys = sorted(set(partitions))
    followed = {
        companion.contract.dataset: replace(
            published(replace(target, contract=companion.contract), keys), repeated=commit.repeated
        )
        for companion in companions
    }
    return Together(main=commit, companions=followed)
