from pathlib import Path
from typing import Any

from blogdata.contract.publication import Account
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.quality.online_observer import Point, observed, rates, series
from blogdata.table.target import Provenance
from toy import declared, target

VIEWS = declared(
    "silver.views",
    "day STRING NOT NULL, user STRING NOT NULL, referral STRING, tags ARRAY<STRING>, times BIGINT NOT NULL",
    by="day",
    stands_for="sum(times)",
    reasons={"duplicates": "sum(times - 1)"},
    measures={"users": "count(distinct user)"},
)
DAYS = ("2026-01-05", "2026-01-06", "2026-01-07")


def test_every_nullable_column_is_measured_and_no_other() -> None:
    assert observed(VIEWS).measures == {
        "null_share.referral": "avg(cast(`referral` is null as double))",
        "null_share.tags": "avg(cast(`tags` is null as double))",
        **VIEWS.measures,
    }


def test_committed_measures_are_read_as_a_series(spark: Any, tmp_path: Path) -> None:
    rows = [
        (DAYS[0], "ann", None, None, 3),
        (DAYS[0], "bob", "news", ["a"], 1),
        (DAYS[0], "bob", "news", ["a"], 1),
        (DAYS[0], "eve", None, ["a"], 1),
        (DAYS[1], "ann", "mail", ["a"], 1),
    ]
    frame = spark.createDataFrame(rows, VIEWS.ddl.replace(" NOT NULL", ""))
    accounts = {day: Account(rows_in=rows) for day, rows in zip(DAYS, (6, 1, 0), strict=True)}
    commit = overwrite_partitions(
        frame, target(tmp_path, contract=observed(VIEWS)), DAYS, Provenance(accounts=accounts)
    )
    published = commit.entries
    assert series(published, "null_share.referral") == [
        Point(partition=DAYS[0], value=0.5, rows=4),
        Point(partition=DAYS[1], value=0.0, rows=1),
        Point(partition=DAYS[2], value=None, rows=0),
    ]
    assert [point.value for point in series(published, "null_share.tags")] == [0.25, 0.0, None]
    assert series(published, "null_share.user") == [], "a measure that was never taken"
    assert [(point.value, point.rows) for point in rates(published, "duplicates")] == [(2 / 6, 6), (0.0, 1), (None, 0)]
