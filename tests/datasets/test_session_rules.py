"""Session columns for analysts contain no personal data."""

from __future__ import annotations

from datetime import datetime, timezone

from pyspark.sql import SparkSession

from assets.gold import sessions_daily

START = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
SCHEMA = (
    "event_date STRING, session_id STRING, started_at TIMESTAMP, ended_at TIMESTAMP, pages BIGINT, entry_page STRING, "
    "exit_page STRING, referral STRING, first_pages ARRAY<STRING>, keep_private BOOLEAN"
)
SHOWN = {
    "https://mail.example/read?user=alice@example.org": "https://mail.example/read",
    "https://example.org/#/users/alice": "https://example.org/",
    "https://alice:secret@example.org/a@b": "https://example.org/a@b",
    "https://example.org/a?\nb": "https://example.org/a",
    "https://example.org/wiki/Spark": "https://example.org/wiki/Spark",
    "": "",
    None: None,
}


def test_a_referral_is_shown_without_what_may_be_personal(spark: SparkSession) -> None:
    rows = [
        ("2026-01-05", str(number), START, START, 1, "/", "/", referral, ["/"], False)
        for number, referral in enumerate(SHOWN)
    ]
    found = sessions_daily.columns(spark.createDataFrame(rows, SCHEMA)).select("session_id", "referral").collect()
    assert {int(row.session_id): row.referral for row in found} == dict(enumerate(SHOWN.values()))
