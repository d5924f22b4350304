"""The fields of a line are those that plain Python reads; fields missing in a format are null."""

from __future__ import annotations

from pyspark.sql import SparkSession

import log_writers
from assets.transforms import log_lines
from blogdata.patterns.ingestion import log_formats
from blogdata.patterns.ingestion.log_declarations import FIELDS
from transforms.log_rows import IPHONE, UNFIT, frame_of, line

DECLARED = (
    "log_format x '$host $remote_addr - $remote_user [$time_local] ' '\"$request\" $status $request_length';",
    r'LogFormat "%{X-Real-IP}i\t%v\t%t\t\"%r\"\t%>s\t100%%" tabs',
    "#Fields: time date cs-method cs-uri c-ip sc-status",
    '{"at": "$msec", "client": {"ip": "$remote_addr"}, "request": "$request", "status": $status}',
    '$remote_addr [$time_local] "$request" $status "$http_user_agent" $http_x_real_ip',
)


def test_lines_are_read_as_plain_python_reads_them(spark: SparkSession) -> None:
    texts = [
        line(),
        line(address="2001:db8::1"),
        line(agent=IPHONE),
        line(referrer="http://a.example/"),
        line(agent=""),
    ]
    requests = [request for text in texts if (request := log_writers.request_in(text))]
    lines: list[str] = [log_writers.line_of(name, request) for request in requests for name in log_formats.NAMES]
    lines += [f"Oct  3 21:59:42 web1 nginx: {one}" for one in lines[: len(log_formats.NAMES)]]
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
    lines += [
        f"10.0.0.2, {line()}",
        "prose",
        "#Fields: date time s-ip",
        "Oct  3 21:59:42 web1 nginx: {",
        *(text for text, _ in UNFIT),
    ]
    asked = '[17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200'
    of_declared = (
        f"192.0.2.1 10.0.0.1 - - {asked} 512",
        f"blog.example.org 10.0.0.1 - - {asked} 512",
        "10.0.0.1\tblog.example.org\t" + asked.replace(' "', '\t"').replace('" ', '"\t') + "\t100%",
        f"web-1  | 192.0.2.1 10.0.0.1 - - {asked} 512",
        "10:05:03 2015-05-17 GET /blog/a?x=1 10.0.0.1 200",
        '{"at": 1431857103.25, "client": {"ip": "10.0.0.1"}, "request": "GET / HTTP/1.1", "status": 200}',
        f'10.0.0.2 {asked} "Fire+fox" 10.0.0.1',
    )
    known = log_formats.formats(DECLARED)
    read = log_lines.with_fields(frame_of(spark, [*lines, *of_declared]), known).orderBy("source_offset").collect()
    for text, row in zip([*lines, *of_declared], read, strict=True):
        fields = known.read(text) or {}
        assert {name: row[name] for name in FIELDS} == {name: fields.get(name) for name in FIELDS}, text
        assert row["log_format"] == known.format_of(text)
    own = read[len(lines) :]
    assert {row["log_format"] for row in own} == {"declared"}
    assert [(row["address"], row["forwarded"]) for row in own] == [("10.0.0.1", None)] * 6 + [("10.0.0.2", "10.0.0.1")]
