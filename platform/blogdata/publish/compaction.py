"""Rewrites the small files of a table as fewer large ones, in one audited commit that changes no row.

Pattern: Compactor (:mod:`blogdata.patterns.ingestion.compactor`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from blogdata.errors import ConfigurationError
from blogdata.lake import members
from blogdata.lake.arrow import text
from blogdata.publish.changes import Statement
from blogdata.publish.target import Engine, Target
from blogdata.publish.write_faults import translated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPACTED = "compacted"
"""Key of the figures in the metadata of a compaction's commit; it has no measures, so it is no publication."""
_SIZES = "spark.databricks.delta.optimize"


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """What one commit compacted.

    Args:
        version: Version of the table.
        rows: Rows of the rewritten files; the audit found the same ones in the new files.
        files_before: Number of files that were rewritten.
        files: Number of files that replace them.
        bytes_before: Their size before, in bytes.
        bytes: Their size after, in bytes.
    """

    version: int
    rows: int
    files_before: int
    files: int
    bytes_before: int
    bytes: int


def compact(
    spark: SparkSession, target: Target, partitions: Sequence[str], *, small: int, most: int
) -> Compaction | None:
    """Merge the small files of some partitions, in one commit; the new files have the same rows, or nothing changes.

    Args:
        spark: The session.
        target: The table, its contract and the run; it exists.
        partitions: Keys of the partitions; empty for a table without a partition column.
        small: Only files smaller than this are rewritten, in bytes.
        most: Largest size of a new file, in bytes.

    Returns:
        What was compacted; None if no two small files are in one partition.

    Raises:
        ConfigurationError: The engine's jar is not in use, so the rows cannot be compared before the commit.
        BehindAPointer: The dataset lives in members, each of which is written once, whole.
        ConcurrentWrite: Another run rewrote the same files meanwhile; transient.
    """
    contract, lake = target.contract, target.lake
    if target.engine is Engine.CHECKPOINT:
        raise ConfigurationError(
            what="without the engine's jar the rows of a compaction cannot be compared before it is committed",
            where=contract.dataset,
            next_step="compact the table where Spark may load the jar",
        )
    table = lake.caught_up(contract.dataset)
    members.refuse_direct(table, contract.dataset)
    assert table is not None
    before = table.version()
    named = hashlib.sha256(",".join(partitions).encode()).hexdigest()[:12]
    commit_id = f"{contract.dataset}/compaction of {named} on {before}"
    audit = {"info": {"commit_id": commit_id, "dataset": contract.dataset, "run": asdict(target.run)}}
    keys = f" WHERE `{contract.partition_column}` IN ({', '.join(map(text, partitions))})" if partitions else ""
    change = Statement(sql=f"OPTIMIZE {{table}}{keys}", path=lake.path(contract.dataset))
    writer = spark.range(0).write.format("audited-delta").mode("overwrite").option("audit", json.dumps(audit))
    writer = writer.options(**change.options(), same_rows="true", txnAppId=commit_id, txnVersion="1")
    if target.probe:
        writer = writer.option("probe", target.probe)
    sizes = {f"{_SIZES}.minFileSize": str(small), f"{_SIZES}.maxFileSize": str(most)}
    with translated(contract.dataset, partitions), _configured(spark, sizes):
        writer.save(lake.path(contract.dataset))
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
