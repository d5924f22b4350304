from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from blogdata.contract.schema import How, Subject, Whose
from blogdata.errors import ConfigurationError
from blogdata.table import tables
from blogdata.table.lake import Lake
from blogdata.table.tables import statistics
from quality.contracts import EVERY
from toy import declared

VISITS = declared(
    "silver.clicks",
    "day STRING NOT NULL, raw BINARY, at TIMESTAMP, user BIGINT, page STRING",
    by="day",
    statistics=("at", "user"),
)
PERSON = Subject(whose=Whose.VISITOR, how=How.PSEUDONYM)
PERSONS = tuple(replace(column, subject=PERSON) if column.name == "user" else column for column in VISITS.columns)


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Ten files; each has a hundred users and six minutes of its own, and every page."""
    lake = Lake(root=str(tmp_path_factory.mktemp("lake")))
    tables.enforce(spark, lake, VISITS)
    rows = spark.range(1000).selectExpr(
        "'2026-01-05' AS day",
        "cast('line' AS BINARY) AS raw",
        "timestamp'2026-01-05 00:00:00' + make_dt_interval(0, 0, 0, id * 3.6) AS at",
        "id AS user",
        "concat('/', id % 7) AS page",
    )
    rows.repartitionByRange(10, "user").write.format("delta").mode("append").save(lake.path(VISITS.dataset))
    return lake


def files_read(spark: Any, lake: Lake, predicate: str = "true") -> int:
    return len(lake.read(spark, VISITS.dataset).where(predicate).inputFiles())


def test_a_selective_predicate_reads_fewer_files(spark: Any, lake: Lake) -> None:
    assert (files_read(spark, lake, "user = 421"), files_read(spark, lake)) == (1, 10)
    early, late = "at <= timestamp'2026-01-05 00:10'", "user >= 900"
    assert 0 < files_read(spark, lake, early) < 10
    assert files_read(spark, lake, f"{early} AND {late}") == 0


def test_statistics_of_a_persons_column_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"user \(identifies a person\)") as refused:
        statistics(replace(VISITS, columns=PERSONS, statistics=("at", "user")))
    assert refused.value.next_step == "choose from: at, page"
    assert statistics(replace(VISITS, columns=PERSONS, statistics=()))["delta.dataSkippingNumIndexedCols"] == "0"
    for contract in EVERY.values():
        statistics(contract)


def test_a_files_footer_has_no_limits_of_a_person(spark: Any, tmp_path: Path) -> None:
    """An older table follows with its next publication, though nothing that its contract promises has changed."""
    contract = replace(VISITS, columns=PERSONS, statistics=("at",))
    lake = Lake(root=str(tmp_path))
    tables.enforce(spark, lake, replace(contract, columns=VISITS.columns))
    assert in_footer(spark, lake) >= {"page", "user"}
    tables.enforce(spark, lake, contract)
    assert in_footer(spark, lake) & {"page", "user"} == {"page"}
    before = lake.version(contract.dataset)
    tables.enforce(spark, lake, contract)
    assert lake.version(contract.dataset) == before
    assert lake.read(spark, contract.dataset).where("user = 7").count() == 2


def in_footer(spark: Any, lake: Lake) -> set[str]:
    """Publish a row, and name the columns of whose values the footer of its file has the least and greatest."""
    table = lake.caught_up(VISITS.dataset)
    assert table is not None
    before = set(table.file_uris())
    row = spark.sql("SELECT '2026-01-05' AS day, cast('x' AS BINARY) AS raw, now() AS at, 7L AS user, '/' AS page")
    row.write.format("delta").mode("append").save(lake.path(VISITS.dataset))
    table.update_incremental()
    (new,) = set(table.file_uris()) - before
    group = pq.read_metadata(new).row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    return {chunk.path_in_schema for chunk in chunks if chunk.statistics and chunk.statistics.has_min_max}
