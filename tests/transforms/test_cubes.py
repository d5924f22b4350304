"""Distributed Aggregator: the gold counts equal those of a loop over the visits."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from assets.transforms import cubes
from blogdata.lake.lake import Lake
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.publish.contract import Contract
from blogdata.publish.migrations import both
from blogdata.publish.run import RunContext
from blogdata.publish.target import Provenance, Target
from blogdata.publish.write_faults import AuditFailed
from quality.contracts import CONTRACTS
from quality.contracts.page_views import CUBE_DIMENSIONS, VISITS_CUBE_DAILY

VISITS = (
    "event_date STRING, event_week STRING, device_type STRING, browser STRING, referral_host STRING,"
    " country STRING, page STRING, visit_id STRING, user_id STRING"
)


def some_visits(count: int = 600) -> list[tuple[Any, ...]]:
    draw = random.Random(3)
    return [
        (
            draw.choice(["2026-01-26", "2026-01-27"]),
            "2026-01-26",
            draw.choice(["phone", "", None, "unknown"]),
            draw.choice(["ff", None]),
            draw.choice(["direct", "a.example"]),
            draw.choice(["DE", "JP", None]),
            draw.choice(["/", "/a", "/b"]),
            f"v{draw.randrange(60)}",
            f"u{draw.randrange(20)}",
        )
        for _ in range(count)
    ]


def counted(rows: list[tuple[Any, ...]], places: list[int]) -> dict[Any, tuple[int, int, int]]:
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[place] or "unknown" for place in places)].append(row)
    return {
        key: (len(found), len({row[7] for row in found}), len({row[8] for row in found}))
        for key, found in groups.items()
    }


def by_key(frame: Any, keys: int) -> dict[Any, tuple[int, int, int]]:
    rows = frame.collect()
    found = {tuple(row[:keys]): (row.events, row.visits, row.users) for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize(("period", "place"), [("event_date", 0), ("event_week", 1)])
def test_the_cube_equals_a_plain_count(spark: Any, period: str, place: int) -> None:
    rows = some_visits()
    frame = cubes.visits_cube(spark.createDataFrame(rows, VISITS), period)
    found = by_key(frame, 5)
    assert found == counted(rows, [place, 2, 3, 4, 5])
    assert sum(events for events, _, _ in found.values()) == len(rows)


def test_page_and_referral_statistics_equal_plain_counts(spark: Any) -> None:
    rows = some_visits()
    frame = spark.createDataFrame(rows, VISITS)
    assert by_key(cubes.page_stats(frame), 2) == counted(rows, [0, 6])
    assert by_key(cubes.referral_stats(frame).withColumnRenamed("visitors", "users"), 2) == counted(rows, [0, 4])


def test_page_shares_of_a_day_sum_to_one(spark: Any) -> None:
    shares: dict[str, float] = defaultdict(float)
    for row in cubes.page_stats(spark.createDataFrame(some_visits(), VISITS)).collect():
        shares[row.event_date] += row.share
    assert shares == pytest.approx({"2026-01-26": 1.0, "2026-01-27": 1.0})


def test_results_have_the_columns_of_their_contracts(spark: Any) -> None:
    frame = spark.createDataFrame([], VISITS)
    for result, dataset in (
        (cubes.visits_cube(frame, "event_date"), "gold.visits_cube_daily"),
        (cubes.visits_cube(frame, "event_week"), "gold.visits_cube_weekly"),
        (cubes.page_stats(frame), "gold.page_stats"),
        (cubes.referral_stats(frame), "gold.referral_stats"),
    ):
        contract = CONTRACTS[dataset]
        names = [column.name for column in contract.columns[:-1]]
        schema = both(result, contract).select(*names).schema
        found = [(field.name, field.dataType.simpleString().upper()) for field in schema.fields]
        *columns, hours = [(column.name, column.type) for column in contract.columns]
        assert (found, hours) == (columns, ("hours_present", "INT"))


def test_a_period_without_visits_has_no_rows(spark: Any) -> None:
    assert cubes.visits_cube(spark.createDataFrame([], VISITS), "event_date").count() == 0


def test_daily_visits_do_not_sum_to_weekly_visits(spark: Any) -> None:
    rows = [("2026-01-26", "2026-01-26", "tv", "ff", "direct", "DE", "/", "v", "u")]
    rows.append(("2026-01-27", *rows[0][1:]))
    frame = spark.createDataFrame(rows, VISITS)
    daily = [row.visits for row in cubes.visits_cube(frame, "event_date").collect()]
    weekly = [row.visits for row in cubes.visits_cube(frame, "event_week").collect()]
    assert (sum(daily), sum(weekly)) == (2, 1)


@pytest.mark.campaign
def test_a_cube_from_before_it_had_countries_is_kept_until_it_is_computed_again(spark: Any, tmp_path: Path) -> None:
    """A day counts by country on all of its rows or on none, and its page views add up either way."""
    rows = some_visits()
    frame = spark.createDataFrame(rows, VISITS)
    counted_by_country = cubes.visits_cube(frame, "event_date").withColumn("hours_present", F.lit(24))
    keys = tuple(column.name for column in CUBE_DIMENSIONS)
    older = replace(
        VISITS_CUBE_DAILY,
        columns=tuple(column for column in VISITS_CUBE_DAILY.columns if column.name != "country"),
        key=("event_date", *keys),
        audits=(),
    )
    before = counted_by_country.drop("country").dropDuplicates(["event_date", *keys])
    lake, runs = Lake(root=str(tmp_path)), itertools.count()

    def publish(contract: Contract, frame: Any, *days: str) -> None:
        run = RunContext(run_id=f"run-{next(runs)}", job="daily", code_version="c", trigger="test")
        kept = frame.where(F.col("event_date").isin(*days))
        overwrite_partitions(kept, Target(lake=lake, contract=contract, run=run), days, Provenance())

    def countries() -> dict[str, set[str | None]]:
        rows = lake.read(spark, VISITS_CUBE_DAILY.dataset).select("event_date", "country").distinct().collect()
        return {day: {row.country for row in rows if row.event_date == day} for day in {row.event_date for row in rows}}

    publish(older, before, "2026-01-26", "2026-01-27")
    publish(VISITS_CUBE_DAILY, counted_by_country, "2026-01-27")
    assert countries() == {"2026-01-26": {None}, "2026-01-27": {"DE", "JP", "unknown"}}
    half = counted_by_country.withColumn("country", F.nullif("country", F.lit("DE")))
    with pytest.raises(AuditFailed, match="country_throughout"):
        publish(VISITS_CUBE_DAILY, half, "2026-01-27")
    publish(VISITS_CUBE_DAILY, counted_by_country, "2026-01-26")
    assert countries() == {day: {"DE", "JP", "unknown"} for day in ("2026-01-26", "2026-01-27")}
