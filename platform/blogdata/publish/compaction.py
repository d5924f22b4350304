"""Rewrites files of a table, fewer and larger or sorted, in one audited commit that changes no row.

Patterns: Compactor (:mod:`blogdata.patterns.ingestion.compactor`), Sorter
(:mod:`blogdata.patterns.storage.sorter`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from blogdata.lake import members
from blogdata.lake.arrow import text
from blogdata.publish.changes import Statement
from blogdata.publish.target import Target
from blogdata.publish.write_faults import translated

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession

COMPACTED = "compacted"
"""Key of the figures in the metadata of such a commit; it has no measures, so it is no publication."""
_SIZES = "spark.databricks.delta.optimize"


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """What one commit rewrote."""

    version: int
    rows: int
    files_before: int
    files: int
    bytes_before: int
    bytes: int


def compact(
    spark: SparkSession, target: Target, partitions: Sequence[str], *, small: int, most: int
) -> Compaction | None:
    """Merge the small files of some partitions, in one commit; None if no two small files are in one partition.

    Args:
        small: Only files smaller than this are rewritten, in bytes.
        most: Largest size of a new file, in bytes.
    """
    table = _opened(target)
    sizes = {f"{_SIZES}.minFileSize": str(small), f"{_SIZES}.maxFileSize": str(most)}
    return _rewritten(spark, target, partitions, (), sizes, before=table.version())


def sort(
    spark: SparkSession, target: Target, partitions: Sequence[str], by: Sequence[str], *, at: int, size: int
) -> Compaction:
    """Sort the rows of some partitions along a Z-order curve, in one commit; repeated calls change nothing."""
    # A published member, which a repeated call may meet, is not opened for another rewrite.
    found = _found(target, at, _commit_id(target, partitions, by, at))
    if found is None:
        _opened(target)
        found = _rewritten(spark, target, partitions, by, {f"{_SIZES}.maxFileSize": str(size)}, before=at)
    assert found is not None
    return found


def _opened(target: Target) -> DeltaTable:
    table = target.lake.caught_up(target.contract.dataset)
    members.refuse_direct(table, target.contract.dataset)
    assert table is not None
    return table


def _commit_id(target: Target, partitions: Sequence[str], order: Sequence[str], before: int) -> str:
    digest = hashlib.sha256(",".join(partitions).encode()).hexdigest()[:12]
    what = f"order by {', '.join(order)}" if order else "compaction"
    return f"{target.contract.dataset}/{what} of {digest} on {before}"


def _rewritten(
    spark: SparkSession,
    target: Target,
    partitions: Sequence[str],
    order: Sequence[str],
    sizes: Mapping[str, str],
    *,
    before: int,
) -> Compaction | None:
    contract, path = target.contract, target.lake.path(target.contract.dataset)
    commit_id = _commit_id(target, partitions, order, before)
    audit = {"info": {"commit_id": commit_id, "dataset": contract.dataset, "run": asdict(target.run)}}
    keys = f" WHERE `{contract.partition_column}` IN ({', '.join(map(text, partitions))})" if partitions else ""
    by = f" ZORDER BY ({', '.join(f'`{column}`' for column in order)})" if order else ""
    change = Statement(sql=f"OPTIMIZE {{table}}{keys}{by}", path=path)
    writer = spark.range(0).write.format("audited-delta").mode("overwrite").option("audit", json.dumps(audit))
    writer = writer.options(**change.options(), same_rows="true", txnAppId=commit_id, txnVersion="1")
    if target.probe:
        writer = writer.option("probe", target.probe)
    with translated(contract.dataset, partitions), _configured(spark, sizes):
        writer.save(path)
    return _found(target, before, commit_id)


def _found(target: Target, before: int, commit_id: str) -> Compaction | None:
    table = target.lake.caught_up(target.contract.dataset)
    assert table is not None
    for version, commit in target.lake.commits(table, before):
        info = json.loads(commit["userMetadata"]) if COMPACTED in commit.get("userMetadata", "") else {}
        if info.get("commit_id") == commit_id:
            return Compaction(version=version, **info[COMPACTED])
    return None


@contextmanager
def _configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)
