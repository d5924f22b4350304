"""The figures of the daily report: each of its own rows, the most viewed page and referrer by name if several are."""

from __future__ import annotations

from pyspark.sql import SparkSession

from assets.gold import daily_report

DAY, NEXT = "2026-01-05", "2026-01-06"
COLUMNS = "period STRING, page STRING, visit_id STRING, user_id STRING, referral_host STRING"
# With equally many page views, the first by name is the most viewed.
VIEWS = [
    (DAY, "/b", "v1", "u1", "search.example"),
    (DAY, "/b", "v1", "u1", "direct"),
    (DAY, "/a", "v2", "u1", "direct"),
    (DAY, "/a", "v3", "u2", "direct"),
    (DAY, "/c", "v3", "u2", "news.example"),
    (NEXT, "/c", "v4", "u2", "direct"),
]


def test_the_figures_of_a_day_are_those_of_its_rows(spark: SparkSession) -> None:
    sources = {
        daily_report.VISITS: spark.createDataFrame(VIEWS, COLUMNS),
        daily_report.DEAD_LETTERS: spark.createDataFrame([(DAY,), (DAY,)], "period STRING"),
    }
    rows = daily_report.figures(spark, sources).collect()
    found = {(row.period, row.metric): (row.value, row.detail) for row in rows}
    assert len(found) == len(rows)
    assert found == {
        (DAY, "views"): (5, None),
        (DAY, "visits"): (3, None),
        (DAY, "visitors"): (2, None),
        (DAY, "top_page"): (2, "/a"),
        (DAY, "top_referrer"): (3, "direct"),
        (DAY, "dead_letters"): (2, None),
        (NEXT, "views"): (1, None),
        (NEXT, "visits"): (1, None),
        (NEXT, "visitors"): (1, None),
        (NEXT, "top_page"): (1, "/c"),
        (NEXT, "top_referrer"): (1, "direct"),
    }
