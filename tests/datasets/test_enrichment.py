"""Static Joiner: an event gets exactly the user and device versions valid at its time, and the place of its address."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import functions as F

from assets.silver import user_history
from assets.silver.enriched import enrich
from datasets.test_users import ROWS, TODAY, identified
from quality.contracts import CONTRACTS

EVENT = (
    "page STRING, event_time TIMESTAMP, user_id STRING, device_type STRING, device_version STRING, ip STRING, "
    "keep_private BOOLEAN, referral STRING"
)
EMAILS = (("2024-06-01", "a@"), ("2024-06-21", "b@"), ("2024-07-05", "c@"))
"""The deliveries of the user in figure 5-1, who had another address in each of them."""
MICROSECOND = timedelta(microseconds=1)
PUBLIC, OTHER = "8.8.8.8", "9.9.9.9"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def day(time: Any) -> Any:
    return F.date_format(time, "yyyy-MM-dd")


def deliveries(spark: Any, emails: Sequence[tuple[str, str]]) -> Any:
    rows: list[tuple[Any, ...]] = [
        (at, "f", 0, "1", "login", email, utc(EMAILS[0][0]), None, None, [], None, None) for at, email in emails
    ]
    return identified(spark.createDataFrame(rows, ROWS))


def visit(page: str, at: datetime, *, ip: str | None = None) -> tuple[Any, ...]:
    return (page, at, "1", "phone", "1", ip, False, None)


def enriched(spark: Any, visits: Sequence[tuple[Any, ...]], **reference: Any) -> Any:
    nothing = {
        name: spark.createDataFrame([], CONTRACTS[f"silver.{name}"].ddl) for name in ("users", "devices", "places")
    }
    return enrich(spark.createDataFrame(visits, EVENT), **{**nothing, **reference})


def test_users_of_figure_5_1_are_joined_as_of_the_visit(spark: Any) -> None:
    history = user_history.history(deliveries(spark, EMAILS))
    rows = history.select("email", day("valid_from"), day("valid_to"), "is_current").orderBy("valid_from").collect()
    # SCD type 2.
    assert [tuple(row) for row in rows] == [
        ("a@", "2024-06-01", "2024-06-21", False),
        ("b@", "2024-06-21", "2024-07-05", False),
        ("c@", "2024-07-05", None, True),
    ]
    # SCD type 4: the current value in a table of its own.
    current = identified(spark.createDataFrame([], TODAY), "user_id")
    for at, email in EMAILS:
        current = user_history.newest(deliveries(spark, [(at, email)]), current, at)
    assert [tuple(row) for row in current.select("email", "changed_on").collect()] == [("c@", "2024-07-05")]

    times = [utc(EMAILS[0][0]) - MICROSECOND, *(utc(at) for at, _ in EMAILS), utc("2030-01-01")]
    times += [utc(at) - MICROSECOND for at, _ in EMAILS[1:]]
    visits = [visit(at.isoformat(), at) for at in times]
    found = enriched(spark, visits, users=history).select("page", "user_known", day("user_version_from")).collect()
    assert {row[0]: (row[1], row[2]) for row in found} == {
        at.isoformat(): max(((True, begins) for begins, _ in EMAILS if utc(begins) <= at), default=(False, None))
        for at in times
    }
    # State before the last delivery: the visits until then had the same versions.
    earlier = [event for event in visits if event[1] < utc(EMAILS[-1][0])]
    before = enriched(spark, earlier, users=user_history.history(deliveries(spark, EMAILS[:-1])))
    assert {tuple(row) for row in before.select("page", "user_known", day("user_version_from")).collect()} == {
        tuple(row) for row in found if row[0] in {event[0] for event in earlier}
    }


def test_a_visit_has_the_place_of_its_address(spark: Any) -> None:
    known = spark.createDataFrame([(PUBLIC, "found", "DE")], CONTRACTS["silver.places"].ddl)
    visits = [
        visit(page, utc("2026-01-05"), ip=ip) for page, ip in {"/found": PUBLIC, "/other": OTHER, "/none": None}.items()
    ]
    rows = enriched(spark, visits, places=known).select("page", "country", "place_outcome").collect()
    assert {row[0]: tuple(row[1:]) for row in rows} == {
        "/found": ("DE", "found"),
        "/other": (None, "waiting"),
        "/none": (None, None),
    }
