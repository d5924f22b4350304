"""Rewrites the many small files of a table that grows by appends without a JVM: the event log, certificates."""

from __future__ import annotations

from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from blogdata.lake.data_files import ZSTD

COMPACT_EVERY = 100
"""Number of appends after which a table's small files are compacted."""


def compact_if_due(table: DeltaTable) -> None:
    """Compact a table at every hundredth of its versions."""
    if table.version() % COMPACT_EVERY == COMPACT_EVERY - 1:
        compact(table)


def compact(table: DeltaTable) -> bool:
    """Rewrite a table's many small files as few; return False if another process has committed since it was opened.

    `optimize.compact` is not used: delta-rs commits both of two that start at one version, and every row is duplicated.
    Instead the table is overwritten with its own rows, which is refused if another commit was added.
    """
    rows = table.to_pyarrow_dataset().to_table()
    try:
        once = CommitProperties(max_commit_retries=0)
        write_deltalake(table, rows, mode="overwrite", commit_properties=once, writer_properties=ZSTD)
    except CommitFailedError:
        return False
    return True
