"""Clients that act like crawlers in an hour of arrival are crawlers in it, as plain Python finds them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

import blog_log
import oracle
import oracle_logs
from assets.bronze.request_lines import with_acting_crawlers
from assets.bronze.visit_lines import ReceivedLines
from blogdata.landing.lines import read
from blogdata.operate.config import CrawlerSettings, LogSettings
from datasets.log_rows import line

LATER = "2015-05-17T11"
MANY = [line(address="10.5.0.1")] * 4 + [line(address="10.5.0.2")] * 3
ROBOTS = [line("GET /robots.txt HTTP/1.1", address="10.5.0.3"), line(address="10.5.0.3")]


def filtered_by(
    spark: SparkSession, landing: Path, hours: Mapping[str, Sequence[bytes]], crawlers: CrawlerSettings
) -> dict[str, list[tuple[str | None, str | None]]]:
    """Return the crawler and the filter of each line of an hour; the lines of an hour are in two files."""
    files = {hour: [landing / hour / f"{name}.log" for name in "ab"] for hour in hours}
    for hour, lines in hours.items():
        (landing / hour).mkdir(parents=True)
        for at, file in enumerate(files[hour]):
            file.write_bytes(b"\n".join(lines[at::2]) + b"\n")
    rows = read(spark, landing, files, ReceivedLines(LogSettings())).withColumnRenamed("partition", "arrival_hour")
    found = defaultdict[str, list[tuple[str | None, str | None]]](list)
    judged = with_acting_crawlers(rows, crawlers).orderBy("arrival_hour", "source_file", "source_offset")
    for hour, crawler, name in judged.select("arrival_hour", "crawler", "filtered_by").collect():
        found[hour].append((crawler, name))
    # In the order of the lines again.
    for hour, lines in hours.items():
        half = (len(lines) + 1) // 2
        first, second = found[hour][:half], found[hour][half:]
        found[hour][::2], found[hour][1::2] = first, second
    return dict(found)


def test_who_reads_robots_or_too_many_pages_in_an_hour_is_a_crawler_in_it(spark: SparkSession, tmp_path: Path) -> None:
    later = [line(address=f"10.5.0.{at}", time="17/May/2015:11:05:03 +0000").encode() for at in (1, 3)]
    mine = [*(text.encode() for text in (*MANY, *ROBOTS)), b"prose", b"#Version: 1.0", line(agent="curl/8").encode()]
    hours: dict[str, list[bytes]] = {"2015-05-17T10": mine, LATER: later}
    for raw in [*blog_log.lines_of_a_log()][:700]:
        request = oracle_logs.request_of(raw.decode("utf-8", "replace"))
        moment = None if isinstance(request, str) else oracle_logs.log_time(request["time"][1:-1])
        hours.setdefault(f"{moment:%Y-%m-%dT%H}" if moment else LATER, []).append(raw)
    found = filtered_by(spark, tmp_path, hours, CrawlerSettings(most_views=3))
    other, person = ("other", "crawler"), (None, None)
    assert found["2015-05-17T10"] == [
        *[other] * 4,
        *[person] * 3,
        ("other", "asset"),
        other,
        person,
        (None, "comment"),
        ("tool", "crawler"),
    ]
    assert found[LATER][:2] == [person] * 2
    for hour in hours.keys() - {"2015-05-17T10", LATER}:
        expected = [verdict.filtered_by for verdict in oracle.judge_logs(hours[hour], hour, most_views=3)]
        assert [name for _, name in found[hour]] == expected, hour
    without = filtered_by(spark, tmp_path / "other", {LATER: [*later, *later]}, CrawlerSettings(robots_txt=False))
    assert without[LATER] == [person] * 4
