"""Sorter: rows of a frozen year that queries ask for together lie in the same files; statistics skip the others.

Problem: readers filter by visitor or by page. Rows come in the order of time, so each file has nearly every visitor and
page, and its minimum and maximum skip nothing.
How it works: when a year is frozen, its rows are final, and they are rewritten once along a Z-order curve of the
declared columns (`Sorted` of the contract): rows that are near in any of the columns lie in the same few
files, so a predicate on either column skips files. :func:`sort` does it in one commit of the member that nobody reads
yet, if the new files have as many rows as the old ones.
The trap: an order by all columns one after another, as in ORDER BY, serves the first column. Z-order shares: with n
files, a predicate on one of two columns still reads about the square root of n, so a partition of one file gains
nothing and is left alone. A column without statistics is no help either: visitors are found by `user_bucket` (Bucket),
since a person's column has none.
When not to use it: where rows still come: sorting once more rewrites the partition. Delta's liquid clustering sorts
only what came, but excludes partitioned tables.
Source: Data Engineering Design Patterns, ch. 8.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from blogdata.contract.writes import ByPeriod
from blogdata.table import compactor
from blogdata.table.target import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sort(spark: SparkSession, target: Target, at: int) -> int:
    """Sort the rows of a frozen table's large partitions in one audited commit, and return the version with them."""
    order = target.contract.write.frozen if isinstance(target.contract.write, ByPeriod) else None
    if order is None:
        return at
    size: Counter[str] = Counter()
    for file in compactor.files(target.lake.at(target.contract.dataset, at)):
        size[file.partition] += file.bytes
    large = sorted(key for key, total in size.items() if total >= 2 * order.file_bytes)
    if not large:
        return at
    return compactor.sort(spark, target, large, order.by, at=at, size=order.file_bytes)
