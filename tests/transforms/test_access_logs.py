"""Log lines become page views, or are filtered or rejected with a named reason, line for line."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import blog_log
import oracle
import oracle_logs
from assets.transforms import access_logs, visit_events, visit_times, visits_by_inactivity
from blogdata.patterns.ingestion.log_formats import formats
from blogdata.patterns.security.pseudo_anonymizer import derived_key
from blogdata.services.config import CrawlerSettings, ExcludedRequests, LogSettings
from blogdata.services.setting_types import UNIX_SOCKET
from plans import plan_of
from transforms.log_rows import FILTERED, FIREFOX, IPHONE, LINES, LOGS, UNFIT, frame_of, line

REJECTED: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", "empty_line"),
    "white space": (" \t", "empty_line"),
    "prose": ("not a log line", "not_combined_log:time"),
    "cut": (line()[:-10], "not_combined_log:agent"),
    "text after": (line() + " x", "not_combined_log:end"),
    "a line in quotes": (f'"{line()}"', "not_combined_log:end"),
    "a host that is followed by no request": (
        "blog:443 10.0.0.1 - - " + line()[13:41],
        "not_vhost_combined_log:request",
    ),
    "no such day": (line(time="31/Feb/2015:10:05:03 +0000"), "not_combined_log:time"),
    "no such day in another format": (line(time="31/Feb/2015:10:05:03 +0000") + ' "-"', "not_main_log:time"),
    "no address": (line(address="-"), "not_combined_log:address"),
    "a socket": (line(address="unix:"), "not_combined_log:address"),
    "no address in another format": (line(address="256.1.1.1") + ' "-"', "not_main_log:address"),
    "neither address nor time": (line(address="-", time="31/Feb/2015:10:05:03 +0000"), "not_combined_log:address"),
    "no such month": (line(time="17/Mai/2015:10:05:03 +0000"), "not_combined_log:time"),
    "no offset": (line(time="17/May/2015:10:05:03"), "not_combined_log:time"),
    "the separator itself": (line(referrer="a\x1fb"), "not_combined_log:control_character"),
    "only separators": ("\x1f" * 5, "not_combined_log:control_character"),
    "what a read line is replaced by": ("combined" + "\x1f+" * 6, "not_combined_log:control_character"),
    "invalid bytes": (line().encode() + b"\xff", "not_utf8"),
    "too large": (line(referrer="x" * 1_048_576), "too_large"),
    "a future time": (line(time="17/May/2015:11:05:01 +0000"), "impossible_time"),
    "an ancient time": (line(time="17/May/1999:10:05:03 +0000"), "impossible_time"),
}

EVENT = b'{"visit_id":"v","event_time":"2015-05-17T10:00:00Z","user_id":"u","page":"/"}'
CLIENTS = ("10.0.0.1", "10.0.0.2", "2001:db8::1", "a.example.net")
FORMS = ("10.0.0.1:4711", "::ffff:10.0.0.1", "[2001:DB8:0::1]:443", "2001:db8::1%eth0", "A.example.net")
WITHOUT_AGENT = line().removesuffix(f' "-" "{FIREFOX}"')
HOUR = "2015-05-17T10"
LANDED: dict[str, list[str | bytes]] = {
    "filtered": [text for text, _ in FILTERED.values()],
    "rejected": [text for text, _ in (*REJECTED.values(), *UNFIT)],
    "common": [WITHOUT_AGENT, WITHOUT_AGENT.replace("10.0.0.1", "10.0.0.2"), line()],
    "long": [
        line(agent='\\"' * 500_000),
        line(address="::1, " * 200_000 + "::1"),
        line(f"GET /{'%c3%a9' * 150_000} HTTP/1.1"),
    ],
    "view": [
        line(
            "GET /blog/a?x=1&utm_source=News HTTP/1.1",
            agent=IPHONE,
            referrer="https://Search.Example.org:8080/find?q=1",
        )
    ],
    "clients": [
        *(line(address=one) for one in (*CLIENTS, *FORMS)),
        b"\0" * 512 + line().encode(),
        b"\xef\xbb\xbf" + line().encode(),
        line(agent=IPHONE),
    ],
    "json": [EVENT],
    "xml": [EVENT],
}
"""The lines of the tests below, by file."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """All lines of these tests, judged and read once.

    Args:
        plan: The plan of the verdicts.
        verdicts: Their rows.
        views: The rows of the page views among them, read with the key `k`.
        lines: By file, the columns of each line: those of its verdict and, for a page view, those that were read.
    """

    plan: str
    verdicts: DataFrame
    views: DataFrame
    lines: Mapping[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def judged(spark: SparkSession) -> Judged:
    files: dict[str, list[tuple[str | bytes, str]]] = {
        file: [(text, HOUR) for text in texts] for file, texts in LANDED.items()
    }
    files["blog"] = [*blog_lines()]
    rows = [
        (text if isinstance(text, bytes) else text.encode(), file, at, hour, file if file in ("json", "xml") else "log")
        for file, texts in files.items()
        for at, (text, hour) in enumerate(texts)
    ]
    found = visit_events.judge(spark.createDataFrame(rows, LINES))
    plan, verdicts = plan_of(found), found.localCheckpoint()
    views = visit_events.parse(verdicts, key="k").localCheckpoint()
    lines: dict[str, list[dict[str, Any]]] = {file: [{} for _ in texts] for file, texts in files.items()}
    read = verdicts.drop("raw").collect()
    assert len(read) == len(rows)
    for row in (*read, *views.drop("raw").collect()):
        lines[row["source_file"]][row["source_offset"]].update(row.asDict())
    assert all(line for texts in lines.values() for line in texts), "no line is without a verdict"
    return Judged(plan=plan, verdicts=verdicts, views=views, lines=lines)


def blog_lines() -> list[tuple[bytes, str]]:
    """Lines of a blog's log, each with the hour in which it has arrived."""
    found, hour = [], HOUR
    for raw in blog_log.lines_of_a_log():
        request = oracle_logs.request_of(raw.decode("utf-8", "replace"))
        moment = None if isinstance(request, str) else oracle_logs.log_time(request["time"][1:-1])
        hour = f"{moment:%Y-%m-%dT%H}" if moment else hour
        found.append((raw, hour))
    return found


def test_requests_are_page_views_or_filtered_by_name(judged: Judged) -> None:
    rows = judged.lines["filtered"]
    assert {name: (row["reasons"], row["filtered_by"]) for name, row in zip(FILTERED, rows, strict=True)} == {
        name: ([], removed) for name, (_, removed) in FILTERED.items()
    }
    assert all(row["event_hour"] == HOUR for row in rows)


def test_lines_of_no_format_are_rejected_with_the_nearest_and_its_first_wrong_field(judged: Judged) -> None:
    rows = judged.lines["rejected"]
    assert [row["reasons"] for row in rows] == [[reason] for _, reason in (*REJECTED.values(), *UNFIT)]
    assert all(row["filtered_by"] is None and row["event_time"] is None for row in rows)


def test_a_line_in_common_log_format_is_a_page_view_of_an_unknown_browser(judged: Judged) -> None:
    first, second, full = judged.lines["common"]
    assert {name: first[name] for name in ("page", "ip", "referral", "browser", "device_type")} == {
        "page": "/blog/a",
        "ip": "10.0.0.1",
        **dict.fromkeys(("referral", "browser", "device_type")),
    }
    assert len({first["user_id"], second["user_id"], full["user_id"]}) == 3


def test_times_are_those_of_plain_python_and_lie_in_the_hour_that_the_log_is_split_into(spark: SparkSession) -> None:
    days = ("17/May/2015", "29/Feb/2016", "29/Feb/2015", "31/Dec/2016", "01/Jan/2017", "32/Jan/2017", "01/Okt/2017")
    clocks = (
        "00:00:00",
        "00:14:59",
        "10:05:03",
        "23:59:59",
        "23:59:60",
        "12:30:60",
        "12:30:61",
        "12:60:00",
        "24:00:00",
    )
    zones = ("+0000", "-0000", "+0200", "-0330", "+0545", "+1245", "-0930", "+1800", "-1800", "+1801", "-1900", "+0060")
    stamps = [f"{day}:{clock} {zone}" for day in days for clock in clocks for zone in zones]
    rows = spark.createDataFrame([(one,) for one in stamps], "stamp string")
    read = rows.select("stamp", F.unix_seconds(visit_times.log_time(F.col("stamp"))).alias("time")).collect()
    found = {row["stamp"]: row["time"] for row in read}
    times = {stamp: oracle_logs.log_time(stamp) for stamp in stamps}
    assert found == {stamp: time and int(time.timestamp()) for stamp, time in times.items()}
    hours = {stamp: formats().hour_of(line(time=stamp).encode()) for stamp in stamps}
    assert hours == {stamp: time and time.strftime("%Y-%m-%dT%H") for stamp, time in times.items()}
    assert times["31/Dec/2016:23:59:60 +0545"] == datetime(2016, 12, 31, 18, 14, 59, tzinfo=timezone.utc)


def test_a_megabyte_of_escapes_or_of_addresses_is_judged(judged: Judged) -> None:
    assert [row["reasons"] for row in judged.lines["long"]] == [[], [], []]


def test_page_views_have_their_columns(judged: Judged) -> None:
    (row,) = judged.lines["view"]
    assert tuple(judged.views.columns) == visit_events.PARSED
    known = {
        name: row[name] for name in ("page", "utm", "referral", "ip", "keep_private", "browser", "browser_version")
    }
    assert known == {
        "page": "/blog/a",
        "utm": "news / - / -",
        "referral": "search.example.org",
        "ip": "10.0.0.1",
        "keep_private": True,
        "browser": "Mobile Safari",
        "browser_version": "7.0",
    }
    assert (row["device_type"], row["device_version"], row["network_type"]) == ("iPhone", "7.1.2", None)
    assert row["visit_id"] is None


def test_user_ids_depend_on_client_agent_and_key(judged: Judged) -> None:
    found = judged.lines["clients"]
    normal = [
        *CLIENTS,
        *("10.0.0.1", "10.0.0.1", "2001:db8::1", "2001:db8::1", "a.example.net", "10.0.0.1", "10.0.0.1"),
    ]
    derived = [hmac.new(derived_key("k", "user_id"), f"{one} {FIREFOX}".encode(), hashlib.sha256) for one in normal]
    *_, last = found
    assert [row["user_id"] for row in found[:-1]] == [one.hexdigest()[:32] for one in derived]
    assert [row["ip"] for row in found[:-1]] == [None if one[0] == "a" else one for one in normal]
    mine = judged.verdicts.where("source_file = 'clients'")
    other = visit_events.parse(mine, formats=LOGS, key="another").select("user_id").collect()
    assert len({last["user_id"], *(row["user_id"] for row in found), *(row["user_id"] for row in other)}) == 10


def test_the_secret_is_not_in_the_plan(judged: Judged) -> None:
    frame = visit_events.parse(judged.verdicts.limit(1), formats=LOGS, key="canary-7f3a")
    frame = visits_by_inactivity.with_visit_ids(frame, frame.limit(0), "canary-7f3a")
    plan = str(frame._explain_string("extended"))  # type: ignore[operator]
    assert "canary" not in plan
    assert b"canary-7f3a".hex() not in plan.lower()
    assert "Python" not in plan + judged.plan


def test_logs_without_a_key_are_refused(judged: Judged) -> None:
    with pytest.raises(AssertionError, match="key"):
        visit_events.parse(judged.verdicts, formats=LOGS)


def test_json_and_logs_together_lose_no_row(judged: Judged) -> None:
    """The fixture has counted them; a format that nobody knows is judged as JSON."""
    assert [row["page"] for file in ("json", "xml") for row in judged.lines[file]] == ["/", "/"]
    assert judged.lines["common"][2]["page"] == "/blog/a"


def test_a_huge_user_agent_has_no_browser() -> None:
    assert access_logs.client_of("x" * 1_000_000).browser is None


def test_a_log_agrees_with_the_oracle(judged: Judged) -> None:
    lines, found_rows = blog_lines(), judged.lines["blog"]
    hours: dict[str, list[bytes]] = {}
    for raw, hour in lines:
        hours.setdefault(hour, []).append(raw)
    judged_hours = {hour: iter(oracle.judge_logs(raws, hour)) for hour, raws in hours.items()}
    counted = [next(judged_hours[hour]) for _, hour in lines]
    for (raw, _), expected, row in zip(lines, counted, found_rows, strict=True):
        assert (tuple(row["reasons"]), row["filtered_by"]) == (expected.reasons, expected.filtered_by), raw
    events = judged.views.where("source_file = 'blog'")
    visits = visits_by_inactivity.with_visit_ids(events, events.limit(0), "k")
    total = visits.agg(F.count(F.lit(1)), F.countDistinct("visit_id"), F.countDistinct("user_id")).first()
    assert total is not None
    clients: dict[tuple[str, str], list[datetime]] = {}
    for verdict in counted:
        if verdict.client and not verdict.filtered_by:
            assert verdict.time is not None
            clients.setdefault(verdict.client, []).append(verdict.time)
    sizes = Counter(oracle.visits(times) for times in clients.values())
    assert tuple(total) == (
        sum(len(times) for times in clients.values()),
        sum(visits * count for visits, count in sizes.items()),
        len(clients),
    )


MANY = ["10.5.0.1"] * 4 + ["10.5.0.2"] * 3
EXCLUDED = ExcludedRequests(
    addresses=("10.1.0.0/16", "2001:db8::/33", "::1/128"), agents=("mycheck",), paths=("/admin/", "*.php")
)
CRAWLERS = CrawlerSettings(addresses=("10.9.0.0/24",), most_views=3)
BY_SETTINGS = [
    (line(address="10.1.255.1"), "excluded"),
    (line(address="10.2.0.1"), None),
    (line(address="2001:db8::1"), "excluded"),
    (line(address="2001:db8:8000::1"), None),
    (line(address="::1"), "excluded"),
    (line(address="::2"), None),
    (line(address="10.1.0." + "9" * 30), None),
    (line(address="2001:db8:" + "f" * 30), None),
    (line(agent="Mozilla/5.0 MyCheck/2"), "excluded"),
    (line("POST /admin/login HTTP/1.1"), "excluded"),
    (line("GET /admin HTTP/1.1"), None),
    (line("GET /x/y.php?a HTTP/1.1"), "excluded"),
    (line("GET /phpXphp HTTP/1.1"), None),
    (line(address="10.9.0.77"), "crawler"),
    (line(address="10.9.1.77"), None),
    *((line(address=address), "crawler" if address == "10.5.0.1" else None) for address in MANY),
]
CHAINS = {"10.0.0.9": ' "6.6.6.6, 203.0.113.7"', "unix:": ' "203.0.113.7" 0.025', "10.0.0.9, 10.0.0.8": ""}


@dataclass(frozen=True)
class Configured:
    """Lines that were judged by settings, and the columns of their rows."""

    settings: LogSettings
    verdicts: DataFrame
    rows: list[Any]


@pytest.fixture(scope="module")
def configured(spark: SparkSession) -> Iterator[Configured]:
    lines = [*(text for text, _ in BY_SETTINGS), *(line(address=address) + rest for address, rest in CHAINS.items())]
    next_hour = frame_of(spark, [line(address="10.5.0.1", time="17/May/2015:11:05:03 +0000")], "2015-05-17T11")
    settings = LogSettings(exclude=EXCLUDED, crawlers=CRAWLERS, proxies=("10.0.0.0/24", UNIX_SOCKET))
    found = visit_events.judge(frame_of(spark, lines).unionByName(next_hour), formats=LOGS, logs=settings)
    # Too deep for a checkpoint by Spark Connect.
    verdicts = found.cache()
    yield Configured(settings, verdicts, verdicts.orderBy("arrival_hour", "source_offset").collect())
    verdicts.unpersist()


def test_settings_exclude_requests_and_name_crawlers_and_so_does_what_a_client_does(configured: Configured) -> None:
    rows = configured.rows
    assert [row["filtered_by"] for row in rows] == [*(by for _, by in BY_SETTINGS), *[None] * len(CHAINS), None]
    assert {row["crawler"] for row in rows} == {None, "other"}


@pytest.mark.campaign
def test_the_visitor_behind_a_named_proxy_is_who_it_was_forwarded_for(configured: Configured) -> None:
    rows = configured.verdicts.where(F.col("source_offset") >= len(BY_SETTINGS))
    seen = [
        [row["ip"] for row in visit_events.parse(rows, LOGS, "k", logs).orderBy("source_offset").collect()]
        for logs in (configured.settings, LogSettings())
    ]
    assert seen == [["203.0.113.7", "203.0.113.7", "10.0.0.9"], ["10.0.0.9", None, "10.0.0.8"]]
