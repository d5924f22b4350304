"""Transactional Writer: rows of several tables that belong together become visible together, or not at all.

Problem: a job writes a fact and its companion rows (rejected rows, an audit, pending state), and dies between the two
writes. Readers see one without the other, and a retry adds to the half that exists.
How it works: the commit of the main table publishes all of them. :func:`overwrite_together` writes and audits the files
of the companions before that commit, which names them; how many rows they must have is measured in the main table's own
files. A companion's log follows the main table's (`blogdata.table.companions`): its readers first apply the main
table's pending commits to it. The batch is published once per run (`txnAppId`), and followed once (the version of the
main table is the companion's `txnVersion`). A database has such transactions itself;
:mod:`blogdata.deliver.transactional_sink` uses them.
The trap: two commits in the right order: a crash between them leaves readers a mixture, and two runs of different
partitions a version of the second table that belongs to no version of the first. And the transaction only makes one run
all or nothing; that a rerun replaces the rows of the first is due to Data Overwrite.
When not to use it: for tables that are only computed from each other. Readers that bypass this platform see a companion
a moment after its main table, never before it.
Source: "Data Engineering Design Patterns", ch. 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from blogdata.contract.publication import Commit
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.table.publish import commit_id_of, receipt
from blogdata.table.target import Companion, Provenance, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def overwrite_together(
    frame: DataFrame,
    target: Target,
    partitions: Sequence[str],
    provenance: Provenance,
    *,
    companions: Sequence[Companion],
) -> dict[str, Commit]:
    """Replace some partitions of several tables, audited and in one commit; each table has its own view of it."""
    main, contracts = target.contract, [companion.contract for companion in companions]
    for contract in contracts:
        declared = contract.appears_with == main.dataset and contract.partitioning == main.partitioning
        assert declared, f"declare write=AppearsWith(main='{main.dataset}') of {contract.dataset}, and its partitioning"
    commit = overwrite_partitions(frame, target, partitions, provenance, companions=companions)
    commits = {commit.dataset: commit}
    for contract in contracts:
        commit_id = commit_id_of(replace(target, contract=contract), sorted(set(partitions)))
        followed = receipt(target.lake, contract.dataset, commit_id, None)
        commits[contract.dataset] = replace(followed, repeated=commit.repeated)
    return commits
