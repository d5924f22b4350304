"""All requests of access logs are counted, and the number of client-invented values is bounded."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from assets.bronze.request_lines import LogLines
from assets.gold import requests_daily
from blogdata.landing.lines import read
from blogdata.operate.config import LogSettings
from datasets.log_rows import line
from quality.contracts import requests_daily as r

GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


def counted(spark: SparkSession, landing: Path, lines: list[str]) -> list[dict[str, Any]]:
    file = landing / "visits" / "a.log"
    file.parent.mkdir()
    file.write_text("".join(f"{text}\n" for text in lines))
    rows = read(spark, landing, {"2015-05-17T10": [file]}, LogLines(LogSettings()))
    category = F.when(F.contains("raw", F.lit(b"Googlebot")), F.lit("search"))
    return [row.asDict() for row in requests_daily.daily(rows.withColumn("crawler", category)).collect()]


def test_requests_are_counted_by_what_they_are(spark: SparkSession, tmp_path: Path) -> None:
    found = counted(
        spark,
        tmp_path,
        [
            line("GET /a?token=secret HTTP/1.1", host="blog.example:443 "),
            line("GET /b HTTP/1.1", size="-", host="Blog.example:443 "),
            line("HEAD /style.css HTTP/1.1"),
            line("GET /feed.xml HTTP/1.1", agent=GOOGLEBOT),
            line("GET /a HTTP/1.1", agent=GOOGLEBOT),
            line("BREW /pot HTTP/1.1", status="418"),
            line("\\x16\\x03", status="400"),
            line(
                "GET /gone/" + "x" * 300 + "?user=ann HTTP/1.1", status="404", referrer="https://ann@News.example/x?y"
            ),
            line("GET /broken HTTP/1.1", status="503"),
        ],
    )
    columns = ("host", "kind", "status", "method", "path", "referral_host", "requests", "bytes")
    assert Counter(tuple(row[name] for name in columns) for row in found) == Counter(
        [
            ("blog.example", "page", "200", "GET", "", "", 2, 123),
            ("unknown", "asset", "200", "HEAD", "", "", 1, 123),
            ("unknown", "feed", "200", "GET", "", "", 1, 123),
            ("unknown", "crawler:search", "200", "GET", "", "", 1, 123),
            ("unknown", "page", "418", "other", "", "", 1, 123),
            ("unknown", "page", "400", "other", "", "", 1, 123),
            ("unknown", "page", "404", "GET", ("/gone/" + "x" * 300)[: r.LONGEST_PATH], "news.example", 1, 123),
            ("unknown", "page", "503", "GET", "/broken", "direct", 1, 123),
        ]
    )
    assert {row["event_date"] for row in found} == {"2015-05-17"}
    assert {row["status"][0] + "xx" for row in found} == {row["status_class"] for row in found}
