"""The lines that other streams than that of the visits read from the landing zone."""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

from assets.streams import live_lines

EVENT = {"visit_id": "v", "user_id": "u", "event_time": "2026-01-05T10:05:00Z", "page": "/"}
HOUR = "visits/date=2026-01-05/hour=10/a.json"
MISNAMED = (
    "visits/date=2026-01-05/hour=24/a.json",
    "visits/date=2026-01-05/hour=99/a.json",
    "visits/date=2026-13-45/hour=10/a.json",
    "visits/date=2026-02-30/hour=10/a.json",
    "visits/date=2026-01-05/hour=1/a.json",
    "visits/date=2026-01-05/a.json",
)


def test_lines_in_folders_of_no_hour_are_left_out(spark: SparkSession) -> None:
    raw = json.dumps(EVENT).encode()
    rows = [(raw, number, name) for number, name in enumerate([*MISNAMED, HOUR])]
    lines = spark.createDataFrame(rows, "raw BINARY, source_offset BIGINT, source_file STRING")
    found = live_lines.events(lines).collect()
    assert [(row.source_file, row.arrival_hour, row.page) for row in found] == [(HOUR, "2026-01-05T10", "/")]
