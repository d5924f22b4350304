"""A request is equal in every format; fields missing in a format are null."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import log_writers
from assets.transforms import log_lines, visit_events
from blogdata.patterns.ingestion import log_formats
from blogdata.patterns.ingestion.log_declarations import FIELDS
from blogdata.services.log_filters import LogFilters
from blogdata.services.log_settings import LogSettings
from transforms.log_rows import FILTERED, IPHONE, UNFIT, frame_of, line

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
    logs = LogSettings(formats=DECLARED, filters=LogFilters(robots_txt=False))
    verdicts = visit_events.judge(rows, visit_events.LOGS, logs).cache()
    judged_as = verdicts.orderBy("source_offset").collect()
    views: list[dict[str, Any]] = [{}] * len(lines)
    for row in visit_events.parse(verdicts, visit_events.LOGS, "k", logs).collect():
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


def test_lines_are_read_as_plain_python_reads_them(spark: SparkSession) -> None:
    request = log_writers.request_in(line())
    assert request is not None
    lines: list[str] = [log_writers.line_of(name, request) for name in log_formats.NAMES]
    lines += [f"Oct  3 21:59:42 web1 nginx: {one}" for one in lines]
    containers = (
        "web-1  | ",
        "2015-05-17T10:05:03.5Z stdout F ",
        "[pod/a/b] ",
        "17 ",
        "203.0.113.9 | ",
        "\ufeff\ufeff",
    )
    lines += [f"{before}{one}" for before in containers for one in lines[: len(log_formats.NAMES)]]
    lines += [one.replace('"10.0.0.1"', '"10.0.0.3, ::1,10.0.0.1"') for one in lines if one.startswith("{")]
    lines += [f"10.0.0.2, {line()}", "prose", "Oct  3 21:59:42 web1 nginx: {", *(text for text, _ in UNFIT)]
    asked = '[17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200'
    of_declared = (
        f"192.0.2.1 10.0.0.1 - - {asked} 512",
        f"blog.example.org 10.0.0.1 - - {asked} 512",
        "10.0.0.1\tblog.example.org\t" + asked.replace(' "', '\t"').replace('" ', '"\t') + "\t100%",
        f"web-1  | 192.0.2.1 10.0.0.1 - - {asked} 512",
        f'10.0.0.2 {asked} "Firefox" 10.0.0.1',
    )
    known = log_formats.formats(
        (
            "log_format x '$host $remote_addr - $remote_user [$time_local] ' '\"$request\" $status $request_length';",
            r'LogFormat "%{X-Real-IP}i\t%v\t%t\t\"%r\"\t%>s\t100%%" tabs',
            '$remote_addr [$time_local] "$request" $status "$http_user_agent" $http_x_real_ip',
        )
    )
    read = log_lines.with_fields(frame_of(spark, [*lines, *of_declared]), known).orderBy("source_offset").collect()
    for text, row in zip([*lines, *of_declared], read, strict=True):
        fields = known.read(text) or {}
        assert {name: row[name] for name in FIELDS} == {name: fields.get(name) for name in FIELDS}, text
        assert row["log_format"] == known.format_of(text)
    own = read[len(lines) :]
    assert {row["log_format"] for row in own} == {"declared"}
    assert [(row["address"], row["forwarded"]) for row in own] == [("10.0.0.1", None)] * 4 + [("10.0.0.2", "10.0.0.1")]
