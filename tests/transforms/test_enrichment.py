"""Static Joiner: an event gets exactly the user, device and place versions valid at its time.

Local Sequencer: an address is asked for once while its answer is valid, and private addresses are never sent to a
service.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from assets.transforms import enrichment, place_answers, user_changes, users
from assets.transforms.place_answers import ALWAYS
from blogdata.services.answer_journal import AnswerJournal
from blogdata.services.locations import EmbeddedTable, LocationService
from blogdata.simulator.locations import LocationServer, serving
from quality.contracts.places import PLACES
from transforms.test_users import ROWS, TODAY
from transforms.user_rows import identified

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


def delivered(spark: Any, emails: Sequence[tuple[str, str]]) -> Any:
    rows: list[tuple[Any, ...]] = [
        (at, "f", 0, "1", "login", email, utc(EMAILS[0][0]), None, None, []) for at, email in emails
    ]
    return identified(user_changes.with_changes(spark.createDataFrame(rows, ROWS)))


def visit(page: str, at: datetime, *, ip: str | None = None, private: bool = False) -> tuple[Any, ...]:
    return (page, at, "1", "phone", "1", ip, private, None)


def enriched(spark: Any, visits: Sequence[tuple[Any, ...]], **reference: Any) -> Any:
    given = {"users": None, "devices": None, "places": None, **reference}
    return enrichment.enrich(spark.createDataFrame(visits, EVENT), **given)


def table_of_places(spark: Any, *rows: tuple[Any, ...]) -> Any:
    return spark.createDataFrame(rows, PLACES.ddl)


def test_users_of_figure_5_1_are_joined_as_of_the_visit(spark: Any) -> None:
    history = users.history(delivered(spark, EMAILS))
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
        current = users.newest(delivered(spark, [(at, email)]), current, at)
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
    earlier = [one for one in visits if one[1] < utc(EMAILS[-1][0])]
    before = enriched(spark, earlier, users=users.history(delivered(spark, EMAILS[:-1])))
    assert {tuple(row) for row in before.select("page", "user_known", day("user_version_from")).collect()} == {
        tuple(row) for row in found if row[0] in {one[0] for one in earlier}
    }


def test_visits_published_before_links_had_campaigns_have_none(spark: Any) -> None:
    rows = spark.createDataFrame([visit("/", utc("2026-01-05"))], EVENT)
    for events, campaign in ((rows, None), (rows.withColumn("utm", F.lit("a / - / -")), "a / - / -")):
        found = enrichment.enrich(events, users=None, devices=None, places=None)
        assert [row["utm"] for row in found.select("utm").collect()] == [campaign]


def test_a_place_holds_from_its_answer_to_the_next(spark: Any) -> None:
    moved = utc("2026-02-01")
    told = table_of_places(
        spark,
        (PUBLIC, ALWAYS, moved, "found", "DE", "Berlin", "Berlin", place_answers.SERVICE),
        (PUBLIC, moved, None, "found", "FR", None, "Paris", place_answers.SERVICE),
    )
    visits = [
        visit("/before", moved - MICROSECOND, ip=PUBLIC),
        visit("/then", moved, ip=PUBLIC),
        visit("/other", moved, ip=OTHER),
        visit("/none", moved),
    ]
    rows = enriched(spark, visits, places=told).select("page", "country", "city", "place_outcome").collect()
    assert {row[0]: tuple(row[1:]) for row in rows} == {
        "/before": ("DE", "Berlin", "found"),
        "/then": ("FR", "Paris", "found"),
        "/other": (None, None, "waiting"),
        "/none": (None, None, None),
    }


def test_a_private_visit_has_no_place_that_a_service_told(spark: Any) -> None:
    told = table_of_places(
        spark,
        (PUBLIC, ALWAYS, None, "found", "DE", "Berlin", "Berlin", place_answers.SERVICE),
        (OTHER, ALWAYS, None, "found", "FR", None, None, place_answers.HERE),
    )
    visits = [
        visit(f"{ip} {private}", utc("2026-01-05"), ip=ip, private=private)
        for ip in (PUBLIC, OTHER)
        for private in (True, False)
    ]
    frame = enriched(spark, visits, places=told).select("page", "country", "region", "city", "place_outcome")
    assert {row[0]: tuple(row[1:]) for row in frame.collect()} == {
        f"{PUBLIC} True": (None, None, None, "kept_private"),
        f"{PUBLIC} False": ("DE", "Berlin", "Berlin", "found"),
        f"{OTHER} True": ("FR", None, None, "found"),
        f"{OTHER} False": ("FR", None, None, "found"),
    }


def asked(spark: Any, told: Any, *visits: tuple[Any, ...], disclosed: bool = True) -> list[place_answers.Question]:
    new = spark.createDataFrame(visits, EVENT)
    return place_answers.questions(new, told, visits=new, disclosed=disclosed)


def test_a_service_does_not_learn_of_private_visitors(spark: Any) -> None:
    seen = utc("2026-01-05")
    visits = (
        visit("/", seen, ip=PUBLIC, private=True),
        visit("/", seen + timedelta(days=1), ip=OTHER, private=True),
        visit("/", seen, ip=OTHER),
    )
    # The address of the visitor who allowed it is asked for, as of that visit.
    assert [(one.address, one.seen) for one in asked(spark, table_of_places(spark), *visits)] == [(OTHER, seen)]
    here = asked(spark, table_of_places(spark), *visits, disclosed=False)
    assert [one.address for one in here] == [PUBLIC, OTHER]
    # A waiting address is asked for only while a visitor allows it.
    rows = [(ip, ALWAYS, None, "waiting", None, None, None, None) for ip in (PUBLIC, OTHER)]
    assert [one.address for one in asked(spark, table_of_places(spark, *rows), *visits)] == [OTHER]


@pytest.fixture
def server() -> Iterator[LocationServer]:
    with serving(LocationServer(valid_until="2026-02-01T00:00:00+00:00")) as found:
        yield found


def test_an_address_is_asked_for_once_while_its_answer_holds(
    spark: Any, server: LocationServer, tmp_path: Path
) -> None:
    outcomes = {one: server.truth(one).get("error", "found") for one in (f"8.8.8.{n}" for n in range(1, 60))}
    known, unknown = (next(ip for ip, of in outcomes.items() if of == wanted) for wanted in ("found", "unknown"))
    service, journal = LocationService(url=server.url, rate=1000), AnswerJournal(path=tmp_path / "answers")
    january, expired = utc("2026-01-05"), utc("2026-02-01")

    def answered(questions: list[place_answers.Question], now: datetime) -> list[place_answers.Row]:
        given = place_answers.ask(questions, service, journal).answers
        return place_answers.answers(questions, given, now, by_service=True)

    visits = [visit("/", january, ip=ip) for ip in (known, unknown, "10.0.0.1", "no address")]
    rows = answered(asked(spark, table_of_places(spark), *visits), january)
    assert {row[0]: row[1:4] for row in rows} == {
        known: (ALWAYS, expired, "found"),
        unknown: (ALWAYS, january + timedelta(days=30), "unknown"),
        "10.0.0.1": (ALWAYS, None, "reserved"),
        "no address": (ALWAYS, None, "reserved"),
    }
    assert server.paid == {known: 1, unknown: 1}

    told = table_of_places(spark, *rows)
    assert (
        asked(spark, told, *(visit("/", january + timedelta(days=20), ip=ip) for ip in outcomes if ip == known)) == []
    )
    (again,) = asked(spark, told, visit("/", expired, ip=known))
    assert (again.address, again.valid_from) == (known, expired)
    # The service repeats that its answer expired in January; requesting it for every visit would cost every time.
    (row,) = answered([again], expired)
    assert row[1:4] == (expired, expired + timedelta(days=1), "found")
    assert server.paid[known] == 2


def test_the_embedded_table_is_not_paid_for() -> None:
    question = place_answers.Question(address=PUBLIC, valid_from=ALWAYS, seen=utc("2026-01-05"))
    given = place_answers.look_up([question], EmbeddedTable())
    (row,) = place_answers.answers([question], given, utc("2026-01-05"), by_service=False)
    assert (row[3], row[4], row[7]) == ("found", "US", place_answers.HERE)
