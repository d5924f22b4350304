"""Log lines become page views, and what does not is filtered by name or rejected, line for line."""

from __future__ import annotations

import hashlib
import hmac
import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import log_writers
import oracle
import oracle_logs
from assets.transforms import log_lines, user_agents, visit_events, visit_times, visits_by_inactivity
from assets.transforms.keyed_hash import derived_key, keyed_hash
from errors import ConfigurationError
from patterns.ingestion import log_formats
from patterns.ingestion.combined_log import hour_of_combined
from patterns.ingestion.log_declarations import FIELDS
from services.log_filters import LogFilters
from services.log_settings import UNIX_SOCKET

SHARED = Path(__file__).parents[3] / "shared" / "data"
REAL_LOG = SHARED / "access-2015-05-17-18.log"
ODD_LINES = SHARED / "log_lines.tsv"
LINES = "raw binary, source_file string, source_offset bigint, arrival_hour string, format string"
LOGS = frozenset({"combined"})
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:24.0) Gecko/20100101 Firefox/24.0"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 7_1_2 like Mac OS X) AppleWebKit/537.51.2 (KHTML, like Gecko)"
    " Version/7.0 Mobile/11D257 Safari/9537.53"
)


def line(
    request: str = "GET /blog/a?x=1 HTTP/1.1",
    *,
    status: str = "200",
    agent: str = FIREFOX,
    referrer: str = "-",
    address: str = "10.0.0.1",
    time: str = "17/May/2015:10:05:03 +0000",
) -> str:
    return f'{address} - - [{time}] "{request}" {status} 123 "{referrer}" "{agent}"'


def frame_of(spark: SparkSession, lines: list[str | bytes], hour: str = "2015-05-17T10") -> DataFrame:
    rows = [
        (one if isinstance(one, bytes) else one.encode(), "visits/a.log", number, hour, "combined")
        for number, one in enumerate(lines)
    ]
    return spark.createDataFrame(rows, LINES)


def judged(spark: SparkSession, lines: list[str | bytes]) -> list[Any]:
    return visit_events.judge(frame_of(spark, lines), formats=LOGS).orderBy("source_offset").collect()


def parsed(spark: SparkSession, lines: list[str | bytes]) -> list[Any]:
    rows = visit_events.judge(frame_of(spark, lines), formats=LOGS)
    return visit_events.parse(rows, formats=LOGS, key="k").orderBy("source_offset").collect()


FILTERED = {
    "a page": (line(), None),
    "not modified": (line(status="304"), None),
    "a page that names an asset in its query": (line("GET /a?b=.css HTTP/1.1"), None),
    "a word that only contains feed": (line("GET /feedback HTTP/1.1"), None),
    "a page of robots": (line("GET /blog/robots.txt.html HTTP/1.1"), None),
    "posted": (line("POST /blog/a HTTP/1.1"), "method"),
    "head": (line("HEAD / HTTP/1.1"), "method"),
    "no request": (line("-", status="408"), "method"),
    "noise for a request": (line(r"\x16\x03\x01"), "method"),
    "an old request": (line("GET /"), "method"),
    "not found": (line(status="404"), "status"),
    "moved": (line(status="301"), "status"),
    "method comes before status": (line("POST / HTTP/1.1", status="500"), "method"),
    "style": (line("GET /a.css?v=3 HTTP/1.1"), "asset"),
    "upper case picture": (line("GET /A.PNG HTTP/1.1"), "asset"),
    "robots": (line("GET /robots.txt HTTP/1.1", address="10.0.0.9"), "asset"),
    "a page for who reads robots": (line(address="10.0.0.9"), "crawler"),
    "robots asked for by a robot": (line("GET /robots.txt HTTP/1.1", agent="Googlebot/2.1"), "asset"),
    "feed": (line("GET /blog/feed/ HTTP/1.1"), "feed"),
    "feed by suffix": (line("GET /news.rss HTTP/1.1"), "feed"),
    "feed by name": (line("GET /blog/index.xml HTTP/1.1"), "feed"),
    "feed by query": (line("GET /?flav=atom HTTP/1.1"), "feed"),
    "no agent": (line(agent="-"), "crawler"),
    "empty agent": (line(agent=""), "crawler"),
    "a bot": (line(agent="Mozilla/5.0 (compatible; BingBot/2.0)"), "crawler"),
    "a library": (line(agent="Go-http-client/1.1"), "crawler"),
    "one that needs no word for it": (line(agent="Mozilla/5.0 (compatible; Ezooms/1.0; help@moz.com)"), "crawler"),
    "a browser without a window": (line(agent=FIREFOX.replace("Firefox", "HeadlessChrome")), "crawler"),
    "a phone": (line(agent="Mozilla/5.0 (Linux; Android 9; CUBOT_X18_Plus) Chrome/80.0 Mobile Safari/537.36"), None),
}

MANY = ["10.5.0.1"] * 4 + ["10.5.0.2"] * 3
FILTERS = LogFilters(
    addresses=("10.1.0.0/16", "2001:db8::/33", "::1/128"),
    agents=("mycheck",),
    paths=("/admin/", "*.php"),
    crawler_addresses=("10.9.0.0/24",),
    most_views=3,
)
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


def test_settings_exclude_requests_and_name_crawlers_and_so_does_what_a_client_does(spark: SparkSession) -> None:
    lines: list[str | bytes] = [text for text, _ in BY_SETTINGS]
    next_hour = frame_of(spark, [line(address="10.5.0.1", time="17/May/2015:11:05:03 +0000")], "2015-05-17T11")
    found = visit_events.judge(frame_of(spark, lines).unionByName(next_hour), formats=LOGS, filters=FILTERS)
    rows = found.orderBy("arrival_hour", "source_offset").collect()
    assert [row["filtered_by"] for row in rows] == [*(removed for _, removed in BY_SETTINGS), None]
    assert {row["crawler"] for row in rows} == {None, "other"}


REJECTED = {
    "nothing": ("", "empty_line"),
    "white space": (" \t", "empty_line"),
    "prose": ("not a log line", "not_combined_log:time"),
    "cut": (line()[:-10], "not_combined_log:agent"),
    "text after": (line() + " x", "not_combined_log:end"),
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


def test_requests_are_page_views_or_filtered_by_name(spark: SparkSession) -> None:
    rows = judged(spark, [text for text, _ in FILTERED.values()])
    assert {name: (row["reasons"], row["filtered_by"]) for name, row in zip(FILTERED, rows, strict=True)} == {
        name: ([], removed) for name, (_, removed) in FILTERED.items()
    }
    assert all(row["event_hour"] == "2015-05-17T10" for row in rows)


def test_lines_of_no_format_are_rejected_with_the_nearest_and_its_first_wrong_field(spark: SparkSession) -> None:
    rows = judged(spark, [text for text, _ in (*REJECTED.values(), *UNFIT)])
    assert [row["reasons"] for row in rows] == [[reason] for _, reason in (*REJECTED.values(), *UNFIT)]
    assert all(row["filtered_by"] is None and row["event_time"] is None for row in rows)


DECLARED = (
    '"$remote_addr" - "$remote_user" "[$time_local]" "$request" "$status" "$body_bytes_sent" "$http_referer"'
    ' "$http_user_agent" "$http_x_forwarded_for" "$request_time"',
    "#Fields: time date cs-method cs-uri c-ip sc-status",
    '{"at": "$msec", "client": {"ip": "$remote_addr"}, "request": "$request", "status": $status}',
)
WITHOUT_REFERRER = {"common", "alb"}


def test_lines_give_the_same_page_views_in_every_format(spark: SparkSession) -> None:
    own = [line(address="2001:db8::1"), line(agent=IPHONE), line(referrer="http://a.example/")]
    texts = [*(text for text, _ in FILTERED.values()), *own]
    requests = [request for text in texts if (request := log_writers.request_in(text))]
    assert {*log_writers.NAMES} == {*log_formats.NAMES, "declared"}
    named = [(name, log_writers.line_of(name, request)) for name in log_writers.NAMES for request in requests]
    odd = [
        ("declared", "10:05:03 2015-05-17 GET /blog/a?x=1 10.0.0.1 200"),
        ("declared", '{"at": 1431857103.25, "client": {"ip": "10.0.0.1"}, "request": "GET / HTTP/1.1", "status": 200}'),
        ("comment", "#Fields: date time s-ip"),
        ("log", "prose"),
    ]
    lines: list[str | bytes] = [text for _, text in (*named, *odd)]
    rows = frame_of(spark, lines).withColumn("format", F.lit("log"))
    # One of the requests is for robots.txt.
    verdicts = visit_events.judge(rows, visit_events.LOGS, DECLARED, filters=LogFilters(robots_txt=False)).cache()
    judged_as = verdicts.orderBy("source_offset").collect()
    views: list[dict[str, Any]] = [{}] * len(lines)
    for row in visit_events.parse(verdicts, visit_events.LOGS, "k", DECLARED).collect():
        views[row["source_offset"]] = row.asDict()
    verdicts.unpersist()
    assert [row["format"] for row in judged_as] == [name for name, _ in (*named, *odd)]
    assert [row["filtered_by"] for row in judged_as[len(named) :]] == [None, None, "comment", None]
    assert [view.get("page") for view in views[len(named) :]] == ["/blog/a", "/", None, None]
    count = len(requests)
    for at, name in enumerate(log_writers.NAMES):
        left_out = {"event_time"} if name in ("alb", "caddy", "traefik_json") else set()
        left_out |= {"referral"} if name in WITHOUT_REFERRER else set()
        if name != "common":
            assert [(row["reasons"], row["filtered_by"]) for row in judged_as[at * count :][:count]] == [
                (row["reasons"], row["filtered_by"]) for row in judged_as[:count]
            ], name
            assert [seen(view, left_out) for view in views[at * count :][:count]] == [
                seen(view, left_out) for view in views[:count]
            ], name
    assert sum(view != {} for view in views[:count]) > 5


def seen(view: dict[str, Any], left_out: set[str]) -> dict[str, Any]:
    position = {"raw", "source_offset", "format"}
    return {name: value for name, value in view.items() if name not in position | left_out}


def test_the_fields_that_only_some_formats_have_are_null_in_the_others(spark: SparkSession) -> None:
    request = log_writers.request_in(line())
    assert request is not None
    lines: list[str | bytes] = [log_writers.line_of(name, request) for name in log_formats.NAMES]
    lines += [f"Oct  3 21:59:42 web1 nginx: {one}" for one in lines]
    lines += [f"10.0.0.2, {line()}", "prose", "Oct  3 21:59:42 web1 nginx: {", *(text for text, _ in UNFIT)]
    read = log_lines.with_fields(frame_of(spark, lines), log_formats.formats()).orderBy("source_offset").collect()
    for text, row in zip(lines, read, strict=True):
        fields = log_formats.formats().read(str(text)) or {}
        assert {name: row[name] for name in FIELDS} == {name: fields.get(name) for name in FIELDS}, text


UNFIT = [
    ('{"remote_addr": "10.0.0.1", "time": "2015-05-17T10:05:03Z", "status": 200}', "not_nginx_json_log:request"),
    ('{"request": {"remote_ip": "10.0.0.1"}, "ts": 1431857103.5, "status": 200}', "not_caddy_log:request"),
    ('{"request": {"remote_ip": "10.0.0.1"', "not_nginx_json_log:object"),
    (
        '{"remote_addr": "10.0.0.1", "time": "noon", "status": 200, "request": "GET /"}',
        "not_nginx_json_log:time",
    ),
    ("2015-05-17 10:05:03 10.0.0.7 GET /a - 443 - 10.0.0.1 Mozilla/5.0 - ok 0 0 25", "not_iis_log:status"),
    ("2015-05-17\t10:05:03\tFRA2-C1\t-\t10.0.0.1\tGET\td.net\t/a\tok", "not_cloudfront_log:status"),
    ("2015-02-31 10:05:03 10.0.0.7 GET /a - 443 - 10.0.0.1 Mozilla/5.0 - 200 0 0 25", "not_iis_log:time"),
    ("https 2015-05-17T10:05:03Z app/blog/50 10.0.0.1:2817 10.0.0.7:80 0 0 0 - 200", "not_alb_log:status"),
]


def test_a_line_in_common_log_format_is_a_page_view_of_an_unknown_browser(spark: SparkSession) -> None:
    short = line().removesuffix(f' "-" "{FIREFOX}"')
    first, second, full = parsed(spark, [short, short.replace("10.0.0.1", "10.0.0.2"), line()])
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
    hours = {stamp: hour_of_combined(line(time=stamp).encode()) for stamp in stamps}
    assert hours == {stamp: time and time.strftime("%Y-%m-%dT%H") for stamp, time in times.items()}
    assert times["31/Dec/2016:23:59:60 +0545"] == datetime(2016, 12, 31, 18, 14, 59, tzinfo=timezone.utc)


def test_a_megabyte_of_escapes_or_of_addresses_is_judged(spark: SparkSession) -> None:
    lines: list[str | bytes] = [
        line(agent='\\"' * 500_000),
        line(address="::1, " * 200_000 + "::1"),
        line(f"GET /{'%c3%a9' * 150_000} HTTP/1.1"),
    ]
    assert [row["reasons"] for row in judged(spark, lines)] == [[], [], []]


def test_page_views_have_their_columns(spark: SparkSession) -> None:
    row = parsed(spark, [line(agent=IPHONE, referrer="https://Search.Example.org:8080/find?q=1")])[0]
    assert tuple(row.asDict()) == visit_events.PARSED
    known = {name: row[name] for name in ("page", "referral", "ip", "keep_private", "browser", "browser_version")}
    assert known == {
        "page": "/blog/a",
        "referral": "search.example.org",
        "ip": "10.0.0.1",
        "keep_private": True,
        "browser": "Mobile Safari",
        "browser_version": "7.0",
    }
    assert (row["device_type"], row["device_version"], row["network_type"]) == ("iPhone", "7.1.2", None)
    assert row["visit_id"] is None


def test_desktops_have_their_system_as_device_type(spark: SparkSession) -> None:
    row = parsed(spark, [line()])[0]
    assert (row["browser"], row["device_type"]) == ("Firefox", "Linux")


OUTCOMES: dict[str, Callable[[Any], bool]] = {
    "readable, filtered": lambda row: row["reasons"] == [] and row["filtered_by"] == "method",
    "filtered method": lambda row: row["reasons"] == [] and row["filtered_by"] == "method",
    "dead letter": lambda row: len(row["reasons"]) == 1,
    "dead letter: no address": lambda row: row["reasons"] == ["not_combined_log:address"],
    "page view": lambda row: row["page"] in ("/a", "/a/"),
    "2xx": lambda row: row["page"] == "/a",
    "page view of 203.0.113.9": lambda row: row["page"] in ("/", "/a", "/a/") and row["ip"] == "203.0.113.9",
    "page as is": lambda row: row["page"] == "//a/%7Eb/../c",
    "page view of '/a b' or counted reason": lambda row: row["page"] == "/a b",
    # A format of its own, which nobody has declared here.
    "declared format": lambda row: len(row["reasons"]) == 1,
}


@pytest.mark.shared
def test_lines_that_broke_other_tools_become_what_they_must(spark: SparkSession) -> None:
    told = [one.split("\t") for one in ODD_LINES.read_text(encoding="utf-8").splitlines()[1:]]
    lines: list[str | bytes] = [one.removesuffix("\\r") + "\r" * one.endswith("\\r") for _, _, one in told]
    verdicts = visit_events.judge(frame_of(spark, lines, "2022-10-03T19"), formats=LOGS).cache()
    found = {row["source_offset"]: row.asDict() for row in verdicts.collect()}
    for row in visit_events.parse(verdicts, formats=LOGS, key="k").collect():
        found[row["source_offset"]].update(row.asDict())
    verdicts.unpersist()
    wrong = {
        name: found[at]
        for at, (outcome, name, _) in enumerate(told)
        if not OUTCOMES[outcome]({"page": None, **found[at]})
    }
    assert wrong == {}


def test_user_ids_depend_on_client_agent_and_key(spark: SparkSession) -> None:
    clients = ["10.0.0.1", "10.0.0.2", "2001:db8::1", "a.example.net"]
    forms = ["10.0.0.1:4711", "::ffff:10.0.0.1", "[2001:DB8:0::1]:443", "2001:db8::1%eth0", "A.example.net"]
    marked = [b"\0" * 512 + line().encode(), b"\xef\xbb\xbf" + line().encode()]
    lines: list[str | bytes] = [*(line(address=one) for one in (*clients, *forms)), *marked, line(agent=IPHONE)]
    rows = visit_events.judge(frame_of(spark, lines), formats=LOGS).cache()
    found = {row["source_offset"]: row for row in visit_events.parse(rows, formats=LOGS, key="k").collect()}
    normal = [
        *clients,
        *("10.0.0.1", "10.0.0.1", "2001:db8::1", "2001:db8::1", "a.example.net", "10.0.0.1", "10.0.0.1"),
    ]
    derived = [hmac.new(derived_key("k", "user_id"), f"{one} {FIREFOX}".encode(), hashlib.sha256) for one in normal]
    assert [found[at]["user_id"] for at in range(len(normal))] == [one.hexdigest()[:32] for one in derived]
    assert [found[at]["ip"] for at in range(len(normal))] == [None if one[0] == "a" else one for one in normal]
    last = found[len(normal)]["user_id"]
    other = visit_events.parse(rows, formats=LOGS, key="another").collect()
    rows.unpersist()
    assert len({last, *(row["user_id"] for row in found.values()), *(row["user_id"] for row in other)}) == 10


def test_the_visitor_behind_a_named_proxy_is_who_it_was_forwarded_for(spark: SparkSession) -> None:
    chains = {"10.0.0.9": ' "6.6.6.6, 203.0.113.7"', "unix:": ' "203.0.113.7" 0.025', "10.0.0.9, 10.0.0.8": ""}
    frame = frame_of(spark, [line(address=address) + rest for address, rest in chains.items()])
    proxies = ("10.0.0.0/8", UNIX_SOCKET)
    rows = visit_events.judge(frame, LOGS, (), proxies).cache()
    seen = [
        [row["ip"] for row in visit_events.parse(rows, LOGS, "k", (), how).orderBy("source_offset").collect()]
        for how in (proxies, ())
    ]
    rows.unpersist()
    assert seen == [["203.0.113.7", "203.0.113.7", "10.0.0.9"], ["10.0.0.9", None, "10.0.0.8"]]


def test_rows_that_were_judged_before_keep_their_visitor(spark: SparkSession) -> None:
    judged_rows = visit_events.judge(frame_of(spark, [line(address="-")]), formats=LOGS)
    accepted = judged_rows.withColumns(
        {"reasons": F.array().cast("array<string>"), "event_time": F.current_timestamp()}
    )
    row = visit_events.parse(accepted, formats=LOGS, key="k").first()
    assert row is not None
    expected = hmac.new(derived_key("k", "user_id"), f"- {FIREFOX}".encode(), hashlib.sha256).hexdigest()[:32]
    assert (row["user_id"], row["ip"]) == (expected, None)


def test_the_keyed_hash_is_hmac(spark: SparkSession) -> None:
    row = spark.createDataFrame([("mésage",)], "m string").select(keyed_hash(F.col("m"), "secret", "p")).first()
    assert row is not None
    assert row[0] == hmac.new(derived_key("secret", "p"), "mésage".encode(), hashlib.sha256).hexdigest()


def test_the_secret_is_not_in_the_plan(spark: SparkSession) -> None:
    rows = visit_events.judge(frame_of(spark, [line()]), formats=LOGS)
    frame = visit_events.parse(rows, formats=LOGS, key="canary-7f3a")
    frame = visits_by_inactivity.with_visit_ids(frame, frame.limit(0), "canary-7f3a")
    plan = str(frame._explain_string("extended"))  # type: ignore[operator]
    assert "canary" not in plan
    assert b"canary-7f3a".hex() not in plan.lower()
    assert "Python" not in plan


def test_logs_without_a_key_are_refused(spark: SparkSession) -> None:
    rows = visit_events.judge(frame_of(spark, [line()]), formats=LOGS)
    with pytest.raises(ConfigurationError, match="key"):
        visit_events.parse(rows, formats=LOGS)


def test_json_and_logs_together_lose_no_row(spark: SparkSession) -> None:
    logs = frame_of(spark, [line(), "x"])
    event = '{"visit_id":"v","event_time":"2015-05-17T10:00:00Z","user_id":"u","page":"/"}'
    rows = [
        (event.encode(), "visits/b.json", 0, "2015-05-17T10", "json"),
        (event.encode(), "visits/c.xml", 0, "2015-05-17T10", "xml"),
    ]
    both = visit_events.judge(logs.unionByName(spark.createDataFrame(rows, LINES)))
    assert both.count() == 4
    events = visit_events.parse(both, key="k")
    assert sorted(row["page"] for row in events.collect()) == ["/", "/", "/blog/a"]


VIEWS = (
    "user_id string, event_time timestamp, visit_id string, page string,"
    " arrival_hour string, source_file string, source_offset bigint"
)
START = datetime(2015, 5, 17, 10, tzinfo=timezone.utc)


def views(spark: SparkSession, minutes: list[tuple[str, float]], *, first_line: int = 0) -> DataFrame:
    """Page views, appended to one file in the order given."""
    rows = [
        (user, START + timedelta(minutes=minute), None, "/", "2015-05-17T10", "a.log", first_line + number)
        for number, (user, minute) in enumerate(minutes)
    ]
    return spark.createDataFrame(rows, VIEWS)


def ids(frame: DataFrame) -> list[str]:
    return [row["visit_id"] for row in frame.orderBy("user_id", "event_time").collect()]


def test_a_visit_ends_after_thirty_minutes_of_silence(spark: SparkSession) -> None:
    frame = views(spark, [("a", 0), ("a", 30), ("a", 60), ("a", 90.001), ("b", 30)])
    found = ids(visits_by_inactivity.with_visit_ids(frame, frame.limit(0), "k"))
    assert found[0] == found[1] == found[2]
    assert len(set(found)) == 3


def test_a_visit_crossing_hours_keeps_its_id(spark: SparkSession) -> None:
    whole = [("a", -20.0), ("a", 5.0), ("a", 20.0), ("b", 50.0)]
    at_once = dict(
        zip(whole, ids(visits_by_inactivity.with_visit_ids(views(spark, whole), views(spark, []), "k")), strict=True)
    )
    target, before = views(spark, whole[1:], first_line=1), views(spark, whole[:1])
    assert ids(visits_by_inactivity.with_visit_ids(target, before, "k")) == [at_once[one] for one in whole[1:]]
    alone = ids(visits_by_inactivity.with_visit_ids(target, before.limit(0), "k"))
    assert alone[0] != at_once[whole[0]]


def test_the_edge_is_touched_while_rows_could_join(spark: SparkSession) -> None:
    target = views(spark, [("a", 5), ("b", 50)])
    nothing = views(spark, [])
    end = START + timedelta(hours=1)
    assert visits_by_inactivity.touches_edge(target, nothing, START, None)
    assert not visits_by_inactivity.touches_edge(target, nothing, START - timedelta(minutes=25), None)
    before = views(spark, [("a", -20), ("c", -59)])
    assert visits_by_inactivity.touches_edge(target, before, START - timedelta(minutes=25), None)
    assert not visits_by_inactivity.touches_edge(target, before, START - timedelta(hours=1), None)
    assert visits_by_inactivity.touches_edge(target, nothing, None, end + timedelta(minutes=20))
    assert not visits_by_inactivity.touches_edge(target, nothing, None, end + timedelta(minutes=20, seconds=1))
    assert not visits_by_inactivity.touches_edge(target, nothing, None, None)


def test_visits_computed_hourly_equal_visits_computed_together(spark: SparkSession) -> None:
    draw = random.Random(3)
    moments = sorted({(draw.choice("abcdef"), draw.randrange(0, 6 * 60 * 4) / 4) for _ in range(150)})
    draw.shuffle(moments)
    frame = views(spark, moments).cache()
    everything = {
        (row["user_id"], row["event_time"]): row["visit_id"]
        for row in visits_by_inactivity.with_visit_ids(frame, frame.limit(0), "k").collect()
    }
    piecewise: dict[Any, str] = {}
    for hour in range(6):
        begin, end = START + timedelta(hours=hour), START + timedelta(hours=hour + 1)
        target = frame.where((F.col("event_time") >= F.lit(begin)) & (F.col("event_time") < F.lit(end)))
        look = timedelta(hours=1)
        while True:
            since, until = begin - look, end + look
            inside = (F.col("event_time") >= F.lit(since)) & (F.col("event_time") < F.lit(until))
            around = frame.where(inside).exceptAll(target)
            edges = (since if since > START else None, until if until < START + timedelta(hours=6) else None)
            if not visits_by_inactivity.touches_edge(target, around, *edges):
                break
            look += timedelta(hours=1)
        for row in visits_by_inactivity.with_visit_ids(target, around, "k").collect():
            piecewise[row["user_id"], row["event_time"]] = row["visit_id"]
    frame.unpersist()
    assert piecewise == everything


def test_a_huge_user_agent_has_no_browser() -> None:
    assert user_agents.client_of("x" * 1_000_000).browser is None


@pytest.mark.shared
def test_a_real_log_agrees_with_the_oracle(spark: SparkSession) -> None:
    lines = REAL_LOG.read_bytes().split(b"\n")[:-1]
    rows = []
    for number, raw in enumerate(lines):
        found = oracle_logs.request_of(raw.decode())
        assert isinstance(found, dict)
        moment = oracle_logs.log_time(found["time"][1:-1])
        assert moment is not None
        rows.append((raw, "visits/a.log", number, moment.strftime("%Y-%m-%dT%H"), "combined"))
    verdicts = visit_events.judge(spark.createDataFrame(rows, LINES), formats=LOGS).cache()
    found_rows = verdicts.orderBy("source_offset").collect()
    hours: dict[str, list[bytes]] = {}
    for raw, _, _, hour, _ in rows:
        hours.setdefault(hour, []).append(raw)
    judged_hours = {hour: iter(oracle.judge_logs(raws, hour)) for hour, raws in hours.items()}
    counted = [next(judged_hours[hour]) for _, _, _, hour, _ in rows]
    for raw, expected, row in zip((one[0] for one in rows), counted, found_rows, strict=True):
        assert (tuple(row["reasons"]), row["filtered_by"]) == (expected.reasons, expected.filtered_by), raw
    events = visit_events.parse(verdicts, formats=LOGS, key="k")
    visits = visits_by_inactivity.with_visit_ids(events, events.limit(0), "k")
    total = visits.agg(F.count(F.lit(1)), F.countDistinct("visit_id"), F.countDistinct("user_id")).first()
    verdicts.unpersist()
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
