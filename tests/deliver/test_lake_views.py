"""Metadata Decorator: Spark without the platform and DuckDB can use the lake's views by executing the generated SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blogdata.contract.partitions import Grain
from blogdata.contract.schema import Column, Partitioning
from blogdata.deliver import lake_views
from blogdata.ledger.events import EventLog
from blogdata.patterns.idempotency import fast_metadata_cleaner
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance
from patterns.test_metadata_decorator import FIRST, PAGES, SECOND, publish
from toy import target

WEEKS = replace(
    PAGES, dataset="gold.weeks", columns=PAGES.columns[:3], partitioning=Partitioning(column="day", grain=Grain.WEEK)
)
WIDER = replace(WEEKS, columns=(*WEEKS.columns, Column(name="views", type="BIGINT", description="Views")))
CONTRACTS = [PAGES, WIDER, replace(PAGES, dataset="silver.nothing")]
FIRST_WEEK, SECOND_WEEK = "2026-01-05", "2026-01-12"
Ask = Callable[[str], list[tuple[Any, ...]]]


def publish_week(spark: Any, lake: Lake, contract: Any, week: str, values: str) -> None:
    frame = spark.sql(f"SELECT * FROM VALUES {values}").toDF(*[column.name for column in contract.columns])
    aim = target(Path(lake.root), week, contract=contract)
    EventLog(lake).record(fast_metadata_cleaner.replace_periods(frame, aim, [week], Provenance()))


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A table with a day that was published twice, and two weekly tables, the second with another column."""
    lake = Lake(root=str(tmp_path_factory.mktemp("the lake's folder")))
    publish(spark, lake, FIRST, "2026-01-05", "2026-01-06")
    publish(spark, lake, SECOND, "2026-01-06")
    publish_week(spark, lake, WEEKS, FIRST_WEEK, f"('{FIRST_WEEK}', '/a', 'ann')")
    publish_week(spark, lake, WIDER, SECOND_WEEK, f"('{SECOND_WEEK}', '/b', 'bob', 7L)")
    return lake


@pytest.fixture(params=[lake_views.SPARK, lake_views.DUCKDB], ids=["spark", "duckdb"])
def ask(request: pytest.FixtureRequest, lake: Lake) -> Iterator[Ask]:
    """Runs queries in an engine that knows only the SQL file generated for it."""
    written = {file.name: file for file in lake_views.write(lake, CONTRACTS)}
    script = written[request.param.file].read_text(encoding="utf-8").split(";\n")[:-1]
    if request.param is lake_views.DUCKDB:
        duckdb = pytest.importorskip("duckdb")
        connection = duckdb.connect()
        for statement in script:
            connection.execute(statement)
        yield lambda query: connection.execute(query).fetchall()
        return
    session = request.getfixturevalue("session")
    for statement in script:
        session.sql(statement)
    yield lambda query: [tuple(row) for row in session.sql(query).collect()]
    for name in ("gold", "ops", "silver"):
        session.sql(f"DROP SCHEMA {name} CASCADE")


def test_a_reader_sees_what_is_for_consumers_several_tables_as_one_and_the_run_of_a_row(ask: Ask, lake: Lake) -> None:
    assert ask("SELECT * FROM silver.pages_public ORDER BY day") == [("2026-01-05", "/run-1"), ("2026-01-06", "/run-2")]
    assert not any("nothing" in line for line in lake_views.statements(lake, CONTRACTS, lake_views.SPARK))

    found = ask("SELECT day, page, login, views FROM gold.weeks ORDER BY day")
    assert found == [(FIRST_WEEK, "/a", "ann", None), (SECOND_WEEK, "/b", "bob", 7)]
    assert ask("SELECT * FROM gold.weeks_public ORDER BY day") == [(FIRST_WEEK, "/a", None), (SECOND_WEEK, "/b", 7)]

    found = ask(
        "SELECT v.page, p.run_id, p.code_version, p.job, p.attempt FROM silver.pages_public v JOIN ops.publications p "
        "ON p.dataset = 'silver.pages' AND p.partition = v.day AND p.current ORDER BY v.day"
    )
    assert found == [("/run-1", "run-1", "c1", "hourly", 1), ("/run-2", "run-2", "c2", "repair", 3)]
