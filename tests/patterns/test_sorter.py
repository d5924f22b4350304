from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from blogdata.contract.publication import Account
from blogdata.contract.writes import ByPeriod, Sorted
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.storage import sorter
from blogdata.table.target import Provenance
from quality.contracts import EVERY
from toy import declared, target

WEEK = "2025-12-15"
ROWS, FILE_BYTES = 20_000, 3_000
"""About 21 files of a week. Delta samples where a file begins and adds noise to the order, so the files that a query
reads differ from run to run: four or five of eight, nine or ten of these."""
BY_USER, BY_PAGE = "bucket = 13", "page = '/7'"
CLICKS = declared(
    "gold.clicks",
    "week STRING NOT NULL, click BIGINT NOT NULL, bucket INT, page STRING",
    key=("click",),
    by="week",
    write=ByPeriod(kept=timedelta(days=7), frozen=Sorted(by=("bucket", "page"), file_bytes=FILE_BYTES)),
    statistics=("bucket", "page"),
)


def clicks(spark: Any, week: str) -> Any:
    return spark.range(ROWS).select(
        F.lit(week).alias("week"),
        F.col("id").alias("click"),
        F.pmod(F.xxhash64("id"), F.lit(64)).cast("int").alias("bucket"),
        F.concat(F.lit("/"), F.pmod(F.xxhash64("id", F.lit(1)), F.lit(100))).alias("page"),
    )


def test_sorted_rows_skip_files_for_either_column(spark: Any, tmp_path: Path) -> None:
    aim = target(tmp_path, "week", CLICKS)
    overwrite_partitions(clicks(spark, WEEK), aim, (WEEK,), Provenance(accounts={WEEK: Account(rows_in=ROWS)}))
    version = aim.lake.version(CLICKS.dataset)
    assert version is not None

    def files_read(at: int, predicate: str) -> int:
        rows: Any = aim.lake.read(spark, CLICKS.dataset, at).where(predicate).agg(F.count("page"), F.max("bucket"))
        rows.collect()
        nodes = rows.executionInfo.metrics.extract_graph()[1].values()
        return sum(int(metric.value) for node in nodes for metric in node.metrics if metric.name == "numFiles")

    assert files_read(version, f"{BY_USER} AND {BY_PAGE}") == files_read(version, "true"), (
        "each has all users and pages"
    )
    after = sorter.sort(spark, aim, version)
    assert after > version
    hashed = F.xxhash64("week", "click", "bucket", "page").cast("decimal(38,0)")
    before, now = (aim.lake.read(spark, CLICKS.dataset, at).select(F.sum(hashed)) for at in (version, after))
    assert before.collect() == now.collect()
    everything = files_read(after, "true")
    assert everything >= 16
    for predicate in (BY_USER, BY_PAGE):
        assert files_read(after, predicate) <= 0.6 * everything, predicate


def test_every_declared_order_has_statistics() -> None:
    declared = {
        contract.dataset: set(contract.write.frozen.by) - set(contract.statistics)
        for contract in EVERY.values()
        if isinstance(contract.write, ByPeriod) and contract.write.frozen
    }
    assert declared == {"gold.visits_weekly": set()}
