"""Wrapper: visit events get typed columns, and keep their original bytes."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql import SparkSession

from assets.transforms import visit_events

LINES = "raw binary, source_file string, source_offset bigint, arrival_hour string, format string"
JSON = frozenset({"json"})
EVENT: dict[str, Any] = {
    "visit_id": "v1",
    "event_time": "2026-01-31T06:10:00.250+01:00",
    "user_id": "u1",
    "keep_private": False,
    "page": "/home",
    "context": {
        "referral": "https://example.org/x",
        "ad_id": "ad_1",
        "user": {"ip": "10.0.0.1", "login": "ann", "connected_since": "2026-01-30T08:00:00+01:00"},
        "technical": {
            "browser": "Firefox",
            "browser_version": "20.1",
            "network_type": "LAN",
            "device_type": "PC",
            "device_version": "1.0",
        },
    },
    "unknown": [1],
}


def judged(spark: SparkSession, events: list[Any]) -> Any:
    rows = [
        (
            (one if isinstance(one, str) else json.dumps(one)).encode(),
            "visits/a.json",
            number,
            "2026-01-31T05",
            "json",
        )
        for number, one in enumerate(events)
    ]
    return visit_events.judge(spark.createDataFrame(rows, LINES), formats=JSON)


def parsed(spark: SparkSession, events: list[Any]) -> list[Any]:
    return visit_events.parse(judged(spark, events), formats=JSON).orderBy("source_offset").collect()


def test_every_field_has_its_column_and_type(spark: SparkSession) -> None:
    row = parsed(spark, [EVENT])[0].asDict()
    assert tuple(row) == visit_events.PARSED
    for name in ("event_time", "connected_since"):
        row[name] = row[name].astimezone(timezone.utc)
    assert bytes(row.pop("raw")) == json.dumps(EVENT).encode()
    assert row == {
        "visit_id": "v1",
        "event_time": datetime(2026, 1, 31, 5, 10, 0, 250_000, timezone.utc),
        "event_hour": "2026-01-31T05",
        "user_id": "u1",
        "keep_private": False,
        "page": "/home",
        "utm": None,
        "referral": "https://example.org/x",
        "ad_id": "ad_1",
        "ip": "10.0.0.1",
        "login": "ann",
        "connected_since": datetime(2026, 1, 30, 7, tzinfo=timezone.utc),
        "browser": "Firefox",
        "browser_version": "20.1",
        "network_type": "LAN",
        "device_type": "PC",
        "device_version": "1.0",
        "source_file": "visits/a.json",
        "source_offset": 0,
        "arrival_hour": "2026-01-31T05",
        "format": "json",
    }


def test_the_query_of_a_page_has_a_campaign_and_stays(spark: SparkSession) -> None:
    page = "/home?utm_source=News&utm_medium=email"
    row = parsed(spark, [{**EVENT, "page": page}])[0]
    assert (row["page"], row["utm"]) == (page, "news / email / -")


@pytest.mark.parametrize("answer", ["absent", None])
def test_a_missing_privacy_answer_means_private(spark: SparkSession, answer: str | None) -> None:
    event = {name: value for name, value in EVENT.items() if name != "keep_private"}
    assert parsed(spark, [event if answer else {**event, "keep_private": None}])[0]["keep_private"] is True
