"""Sorter: frozen rows are sorted once, files are skipped for either column, and no row changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from blogdata.evidence import ledger
from blogdata.evidence.events import EventLog
from blogdata.lake import members
from blogdata.lake.commit import Account
from blogdata.lake.lake import Lake
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.idempotency.fast_metadata_cleaner import freeze, replace_periods, visible
from blogdata.patterns.storage import sorter
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain
from blogdata.publish.schema import Column, Partitioning
from blogdata.publish.target import Engine, Provenance
from blogdata.publish.writes import ByPeriod, Sorted
from quality.contracts import EVERY
from scans import Scan, scanned
from toy import target

WEEKS, OPEN = ("2025-12-15", "2025-12-22"), "2026-01-05"
ROWS, FILE_BYTES = 20_000, 3_000
"""About 21 files of a week. Delta samples where a file begins and adds noise to the order, so the files that a query
reads differ from run to run: four or five of eight, nine or ten of these."""
BY_USER, BY_PAGE = "bucket = 13", "page = '/7'"
CLICKS = Contract(
    dataset="gold.clicks",
    description="Clicks by week",
    owner="team:tests",
    columns=(
        Column(name="week", type="STRING", nullable=False, description="Week"),
        Column(name="click", type="BIGINT", nullable=False, description="Identifier"),
        Column(name="bucket", type="INT", description="Bucket of the visitor"),
        Column(name="page", type="STRING", description="Page"),
    ),
    key=("click",),
    partitioning=Partitioning(column="week", grain=Grain.WEEK),
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


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Two weeks of the same year and one of the next."""
    root = tmp_path_factory.mktemp("sorted")
    weeks = (*WEEKS, OPEN)
    rows = clicks(spark, WEEKS[0]).union(clicks(spark, WEEKS[1])).union(clicks(spark, OPEN).limit(1))
    accounts = {week: Account(rows_in=1 if week == OPEN else ROWS) for week in weeks}
    replace_periods(rows, target(root, "weeks", contract=CLICKS), weeks, Provenance(accounts=accounts))
    return Lake(root=str(root))


def of_the_year(spark: Any, lake: Lake) -> Any:
    return lake.read(spark, CLICKS.dataset).where(F.col("week").isin(*WEEKS))


def read_for(spark: Any, lake: Lake, predicate: str) -> Scan:
    return scanned(of_the_year(spark, lake).where(predicate).agg(F.count("page"), F.max("bucket")))


def digest(frame: Any) -> list[Any]:
    rows = frame.select(F.xxhash64(*frame.columns).cast("decimal(38,0)").alias("hash"))
    return list(rows.agg(F.count("hash"), F.sum("hash")).collect())


@pytest.mark.campaign
def test_a_frozen_year_skips_files_for_either_column(spark: Any, lake: Lake) -> None:
    rows, all_of_it = digest(of_the_year(spark, lake)), read_for(spark, lake, "true")
    assert read_for(spark, lake, f"{BY_USER} AND {BY_PAGE}") == all_of_it, "each file has all users and pages"

    aim = target(Path(lake.root), "freeze", contract=CLICKS)
    (year,) = freeze(spark, aim, final_before=OPEN, arrange=partial(sorter.sort, spark))
    assert (year.rows, year.partitions) == (2 * ROWS, WEEKS)
    assert digest(of_the_year(spark, lake)) == rows
    assert [line.problem for line in ledger.audit(lake, EventLog(lake), CLICKS) if line.problem] == []
    (there,) = [member for member in visible(lake, CLICKS.dataset) if member.frozen]
    everything = read_for(spark, lake, "true")
    assert everything.files >= 32
    for one in (BY_USER, BY_PAGE):
        after = read_for(spark, lake, one)
        assert after.files <= 0.6 * everything.files, f"{one} reads {after} of {everything}"
        assert after.bytes <= 0.6 * everything.bytes

    # Run again after it was closed, it finds its own commit and writes nothing.
    table = members.table_of(CLICKS.dataset, there.location)
    newest = lake.version(table)
    inner = replace(aim, contract=replace(CLICKS, dataset=table))
    assert sorter.sort(spark, inner, there.version - 1) == there.version
    assert lake.version(table) == newest


def member(spark: Any, root: Path, contract: Contract, *, engine: Engine = Engine.TRANSACTION) -> Any:
    """Write a week to a table of its own; return the target."""
    aim = target(root, "week", engine, contract)
    accounts = {WEEKS[0]: Account(rows_in=ROWS)}
    overwrite_partitions(clicks(spark, WEEKS[0]), aim, WEEKS[:1], Provenance(accounts=accounts))
    return aim


def test_sorted_rows_skip_files_for_either_column(spark: Any, tmp_path: Path) -> None:
    aim = member(spark, tmp_path, CLICKS)
    version = aim.lake.version(CLICKS.dataset)
    assert version is not None

    def read_at(at: int, predicate: str) -> Scan:
        rows = aim.lake.read(spark, CLICKS.dataset, at).where(predicate)
        return scanned(rows.agg(F.count("page"), F.max("bucket")))

    whole = read_at(version, "true")
    assert read_at(version, f"{BY_USER} AND {BY_PAGE}") == whole, "each file has all users and pages"
    after = sorter.sort(spark, aim, version)
    assert after > version
    before, now = (digest(aim.lake.read(spark, CLICKS.dataset, at)) for at in (version, after))
    assert before == now
    everything = read_at(after, "true")
    assert everything.files >= 16
    for one in (BY_USER, BY_PAGE):
        assert read_at(after, one).files <= 0.6 * everything.files, one


@pytest.mark.campaign
def test_an_order_by_one_column_after_the_other_serves_the_first_only(spark: Any, tmp_path: Path) -> None:
    """The Z-order serves both; so this shows that it is the order that does it, not the number of files."""
    path = str(tmp_path / "straight")
    rows = clicks(spark, WEEKS[0]).repartitionByRange(8, "bucket", "page").sortWithinPartitions("bucket", "page")
    rows.write.format("delta").save(path)
    read = {
        one: scanned(spark.read.format("delta").load(path).where(one).agg(F.count("click"))).files
        for one in ("true", BY_USER, BY_PAGE)
    }
    assert read["true"] == read[BY_PAGE] == 8
    assert read[BY_USER] <= 2


@pytest.mark.campaign
def test_small_partitions_and_other_engines_leave_the_files(spark: Any, tmp_path: Path) -> None:
    large = replace(CLICKS, write=ByPeriod(kept=timedelta(days=7), frozen=Sorted(by=("bucket",))))
    aim = member(spark, tmp_path, large)
    version = aim.lake.version(CLICKS.dataset)
    assert version is not None
    assert sorter.sort(spark, aim, version) == version
    undeclared = replace(CLICKS, write=ByPeriod(kept=timedelta(days=7)))
    assert sorter.sort(spark, replace(aim, contract=undeclared), version) == version
    assert sorter.sort(spark, replace(aim, contract=CLICKS, engine=Engine.CHECKPOINT), version) == version
    assert aim.lake.version(CLICKS.dataset) == version

    # Without its statistics a column of the order would skip nothing.
    unknown = Sorted(by=("click",), file_bytes=FILE_BYTES)
    wrong = replace(aim, contract=replace(CLICKS, write=ByPeriod(kept=timedelta(days=7), frozen=unknown)))
    with pytest.raises(Exception, match=r"ZORDERING_ON_COLUMN_WITHOUT_STATS[^$]*click"):
        sorter.sort(spark, wrong, version)
    assert aim.lake.version(CLICKS.dataset) == version


def test_every_declared_order_has_statistics() -> None:
    declared = {
        contract.dataset: set(contract.write.frozen.by) - set(contract.statistics)
        for contract in EVERY.values()
        if isinstance(contract.write, ByPeriod) and contract.write.frozen
    }
    assert declared == {"gold.visits_weekly": set()}
