"""Log lines become page views, or are filtered or rejected with a named reason, each by itself."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import pytest

import blog_log
import oracle
import oracle_logs
from assets.bronze.request_lines import LogLines
from blogdata.landing.log_formats import formats, time_of
from blogdata.operate.config import CrawlerSettings, ExcludedRequests, LogSettings
from blogdata.operate.setting_types import UNIX_SOCKET
from datasets.log_rows import FILTERED, FIREFOX, IPHONE, UNFIT, line

HOUR, NAMES = "2015-05-17T10", LogLines(LogSettings()).names
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
    "a control character": (line(referrer="a\x1fb"), "not_combined_log:control_character"),
    "invalid bytes": (line().encode() + b"\xff", "not_utf8"),
    "too large": (line(referrer="x" * 1_048_576), "too_large"),
    "a future time": (line(time="17/May/2015:11:05:01 +0000"), "impossible_time"),
    "an ancient time": (line(time="17/May/1999:10:05:03 +0000"), "impossible_time"),
}
WITHOUT_AGENT = line().removesuffix(f' "-" "{FIREFOX}"')


def rows_of(lines: Sequence[str | bytes], logs: LogSettings | None = None, hour: str = HOUR) -> list[dict[str, Any]]:
    # As it reaches a worker.
    reader = pickle.loads(pickle.dumps(LogLines(logs or LogSettings()))).of_file("visits/a.log", hour)
    raws = [one if isinstance(one, bytes) else one.encode() for one in lines]
    return [dict(zip(NAMES, reader(at, raw), strict=True)) for at, raw in enumerate(raws)]


def row_of(text: str | bytes, logs: LogSettings | None = None) -> dict[str, Any]:
    (row,) = rows_of([text], logs)
    return row


def test_requests_are_page_views_or_filtered_by_name() -> None:
    by_itself = {name: case for name, case in FILTERED.items() if "reads robots" not in name}
    rows = rows_of([text for text, _ in by_itself.values()])
    assert {name: (row["reasons"], row["filtered_by"]) for name, row in zip(by_itself, rows, strict=True)} == {
        name: ([], removed) for name, (_, removed) in by_itself.items()
    }
    assert all(row["event_hour"] == HOUR for row in rows)


def test_lines_of_no_format_are_rejected_with_the_nearest_and_its_first_wrong_field() -> None:
    rows = rows_of([text for text, _ in (*REJECTED.values(), *UNFIT)])
    assert [row["reasons"] for row in rows] == [[reason] for _, reason in (*REJECTED.values(), *UNFIT)]
    assert all(row["filtered_by"] is None and row["event_time"] is None and row["client"] is None for row in rows)


def test_a_comment_counts_in_the_hour_in_which_it_arrived() -> None:
    row = row_of("#Version: 1.0")
    assert (row["format"], row["filtered_by"], row["event_hour"]) == ("comment", "comment", HOUR)
    assert row["event_time"] == datetime(2015, 5, 17, 10, tzinfo=timezone.utc)


def test_a_line_in_common_log_format_is_a_page_view_of_an_unknown_browser() -> None:
    row = row_of(WITHOUT_AGENT)
    assert (row["page"], row["ip"]) == ("/blog/a", "10.0.0.1")
    assert {row[name] for name in ("agent", "referral", "browser", "device_type")} == {None}


def test_times_are_those_of_plain_python_and_lie_in_the_hour_that_the_log_is_split_into() -> None:
    days = ("17/May/2015", "29/Feb/2016", "29/Feb/2015", "31/Dec/2016", "01/Jan/2017", "32/Jan/2017", "01/Okt/2017")
    clocks = "00:00:00 00:14:59 10:05:03 23:59:59 23:59:60 12:30:60 12:30:61 12:60:00 24:00:00".split()
    zones = ("+0000", "-0000", "+0200", "-0330", "+0545", "+1245", "-0930", "+1800", "-1800", "+1801", "-1900", "+0060")
    stamps = [f"{day}:{clock} {zone}" for day in days for clock in clocks for zone in zones]
    times = {stamp: oracle_logs.log_time(stamp) if ":61" not in stamp else None for stamp in stamps}
    assert {stamp: time_of(stamp) for stamp in stamps} == times
    hours = {stamp: formats().hour_of(line(time=stamp).encode()) for stamp in stamps}
    assert hours == {stamp: time and time.strftime("%Y-%m-%dT%H") for stamp, time in times.items()}
    assert times["31/Dec/2016:23:59:60 +0545"] == datetime(2016, 12, 31, 18, 14, 59, tzinfo=timezone.utc)


def test_page_views_have_their_columns() -> None:
    asked, referrer = "GET /blog/a?x=1&utm_source=News HTTP/1.1", "https://Search.Example.org:8080/find?q=1"
    row = row_of(line(asked, agent=IPHONE, referrer=referrer))
    page = [row[name] for name in ("page", "utm", "referral", "ip", "keep_private", "bytes", "agent")]
    assert page == ["/blog/a", "news / - / -", "search.example.org", "10.0.0.1", True, 123, IPHONE]
    device = [row[name] for name in ("browser", "browser_version", "device_type", "device_version")]
    assert device == ["Mobile Safari", "7.0", "iPhone", "7.1.2"]
    assert row["visit_id"] is row["user_id"] is None


def test_what_clients_make_up_is_in_no_column_of_a_request() -> None:
    huge = row_of(line().replace(" 200 123 ", f" 200 {'9' * 5000} "))
    made_up = [row_of(line(request)) for request in ("CONNECT jane:pw@blog:443 HTTP/1.1", "jane@x.org /reset HTTP/1.1")]
    assert (huge["reasons"], huge["bytes"]) == ([], 0)
    assert [(row["page"], row["method"]) for row in made_up] == [(None, "CONNECT"), ("/reset", None)]
    of_hosts = [row_of(f"{host}:443 {line()}") for host in ("Blog.Example.org", "jane!x")]
    assert [row["host"] for row in of_hosts] == ["blog.example.org", None]


def test_a_name_has_no_place() -> None:
    rows = rows_of([line(address=one) for one in ("[2001:DB8:0::1]:443", "A.example.net")])
    assert [(row["client"], row["ip"]) for row in rows] == [("2001:db8::1",) * 2, ("a.example.net", None)]


def test_a_huge_user_agent_has_no_browser() -> None:
    assert row_of(line(agent="x" * 500_000))["browser"] is None


def test_a_log_agrees_with_the_oracle() -> None:
    reader = LogLines(LogSettings()).of_file("visits/a.log", "2030-01-01T00")
    for raw in blog_log.lines_of_a_log():
        row: dict[str, Any] = dict(zip(NAMES, reader(0, raw), strict=True))
        expected = oracle.judge_log(raw, "2030-01-01T00")
        assert (tuple(row["reasons"]), row["filtered_by"]) == (expected.reasons, expected.filtered_by), raw
        assert row["event_time"] == expected.time
        if expected.client:
            assert (row["client"], row["agent"] or "") == expected.client


EXCLUDED = ExcludedRequests(
    addresses=("10.1.0.0/16", "2001:db8::/33", "::1/128"), agents=("mycheck",), paths=("/admin/", "*.php")
)
BY_SETTINGS = [
    (line(address="10.1.255.1"), "excluded"),
    (line(address="10.2.0.1"), None),
    (line(address="2001:db8::1"), "excluded"),
    (line(address="2001:db8:8000::1"), None),
    (line(address="::1"), "excluded"),
    (line(address="::2"), None),
    (line(agent="Mozilla/5.0 MyCheck/2"), "excluded"),
    (line("POST /admin/login HTTP/1.1"), "excluded"),
    (line("GET /admin HTTP/1.1"), None),
    (line("GET /x/y.php?a HTTP/1.1"), "excluded"),
    (line("GET /phpXphp HTTP/1.1"), None),
    (line(address="10.9.0.77"), "crawler"),
    (line(address="10.9.1.77"), None),
]


def test_settings_exclude_requests_and_name_crawlers() -> None:
    settings = LogSettings(exclude=EXCLUDED, crawlers=CrawlerSettings(addresses=("10.9.0.0/24",)))
    rows = rows_of([text for text, _ in BY_SETTINGS], settings)
    assert [row["filtered_by"] for row in rows] == [by for _, by in BY_SETTINGS]
    assert {row["crawler"] for row in rows} == {None, "other"}


@pytest.mark.parametrize(
    ("address", "rest", "behind", "without"),
    [
        ("10.0.0.9", ' "6.6.6.6, 203.0.113.7"', "203.0.113.7", "10.0.0.9"),
        ("unix:", ' "203.0.113.7" 0.025', "203.0.113.7", None),
        ("10.0.0.9, 10.0.0.8", "", "10.0.0.9", "10.0.0.8"),
    ],
)
def test_the_visitor_behind_a_named_proxy_is_who_it_was_forwarded_for(
    address: str, rest: str, behind: str, without: str | None
) -> None:
    settings = LogSettings(proxies=("10.0.0.0/24", UNIX_SOCKET))
    assert [row_of(line(address=address) + rest, logs)["ip"] for logs in (settings, None)] == [behind, without]
