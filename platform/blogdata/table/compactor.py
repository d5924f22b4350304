"""Compactor: many small files of a table become few large ones, so that reading it stays as fast as it was.

Problem: a stream that commits every five seconds leaves 17,280 files a day, and queries spend their time opening them.
How it works: the sizes of a table's files are read from its log, without Spark (:func:`files`), and show which
partitions have too many small ones (:func:`due`): those at rest, to which nothing was added in the last hour, and which
are final where the dataset says when that is; and those that are never at rest, once they are crowded. :func:`compact`
exchanges the small files for larger ones, in one commit, if they have as many rows. The commit is no publication, so
nothing that reads the table becomes stale.
The trap: a compaction removes files that a publication of the same partition replaces, and is refused if the
publication comes first. Hence it claims its partitions, and leaves a dataset alone while another run publishes it;
beside a batch that is only appended both commits stand. And it frees nothing: the old files stay until a vacuum, since
older versions and running readers need them.
When not to use it: for tables that are written once, whole, in large files, such as the copies behind a pointer.
Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from blogdata.contract.publication import WHOLE_TABLE
from blogdata.table import arrow, rewriting
from blogdata.table.rewriting import Compaction
from blogdata.table.target import Target

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession

TARGET_BYTES = 128 * 1024**2
"""Largest size of a file that a compaction writes: Spark reads one such file by one task."""
SMALL_BYTES = TARGET_BYTES // 2
"""Size below which a file is small: two of them fit into one."""
MANY = 5
"""Number of small files from which a partition at rest is compacted: fewer would save less than the rewrite costs."""
CROWDED = 200
"""Number of small files from which a partition is compacted although rows are still added to it."""
AT_REST = timedelta(hours=1)
"""Time without a new file after which a partition is at rest."""


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """A data file, as a table's log has it; its partition is :data:`WHOLE_TABLE` in an unpartitioned table."""

    partition: str
    bytes: int
    written_at: datetime


def files(table: DeltaTable) -> list[DataFile]:
    columns = table.metadata().partition_columns
    names = ["size_bytes", "modification_time", *(f"partition.{column}" for column in columns)]
    return [
        DataFile(
            partition=WHOLE_TABLE if not columns else str(row[names[-1]]),
            bytes=int(row["size_bytes"]),
            written_at=datetime.fromtimestamp(int(row["modification_time"]) / 1000, timezone.utc),
        )
        for row in arrow.rows_of(table.get_add_actions(flatten=True), names)
    ]


def due(found: Iterable[DataFile], now: datetime, *, is_final: Callable[[str], bool]) -> dict[str, list[DataFile]]:
    """Map the partitions to compact to their small files, in order; after their compaction none of them is due."""
    of: dict[str, list[DataFile]] = {}
    for file in found:
        of.setdefault(file.partition, []).append(file)
    scattered = {}
    for key, there in sorted(of.items()):
        small = [file for file in there if file.bytes < SMALL_BYTES]
        at_rest = max(file.written_at for file in there) <= now - AT_REST
        if len(small) >= CROWDED or (len(small) >= MANY and at_rest and is_final(key)):
            scattered[key] = small
    return scattered


def compact(spark: SparkSession, target: Target, partitions: Sequence[str]) -> Compaction | None:
    """Merge the small files of some partitions that the run has claimed; None if there was nothing to do."""
    keys = [key for key in partitions if key != WHOLE_TABLE]
    return rewriting.compact(spark, target, keys, small=SMALL_BYTES, most=TARGET_BYTES)
