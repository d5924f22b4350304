"""Rankings of sessions and campaigns equal plain counts over the days of the gold tables."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assets.report import blog
from blogdata.lake.lake import Lake
from blogdata.report.elements import Audience, Ranking
from page_view_rows import PAGES, START, View, random_requests, random_views, write, write_days

DAYS = 20
Rows = list[dict[str, Any]]


def days() -> list[str]:
    return [f"{START + timedelta(days=day):%Y-%m-%d}" for day in range(DAYS)]


@pytest.fixture(scope="module")
def sessions() -> Rows:
    draw = random.Random(4)
    found = []
    for day in days():
        for _ in range(draw.randrange(1, 30)):
            path = [draw.choice(PAGES[:30]) for _ in range(draw.choice((1, 1, 2, 4)))]
            found.append(
                {
                    "event_date": day,
                    "entry_page": path[0],
                    "exit_page": path[-1],
                    "path": " > ".join(path),
                    "pages": len(path),
                    "bounced": len(path) == 1,
                }
            )
    return found


@pytest.fixture(scope="module")
def campaigns() -> Rows:
    draw = random.Random(5)
    rows = [
        (day, campaign, draw.randrange(90)) for day in days() for campaign in ("<b>spring</b>", "autumn", "unknown")
    ]
    return [
        {"event_date": day, "campaign": name, "displays": shown, "events": shown // 3, "displays_alone": shown // 2}
        for day, name, shown in rows
    ]


@pytest.fixture(scope="module")
def requests() -> Rows:
    return random_requests(days(), seed=6)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, sessions: Rows, campaigns: Rows, requests: Rows) -> Audience:
    lake = Lake(root=str(tmp_path_factory.mktemp("lake")))
    write(lake, random_views((DAYS - 1) * 24 + 7, seed=3))
    write_days(lake, "gold.sessions_daily", sessions)
    write_days(lake, "gold.campaign_stats", campaigns)
    write_days(lake, "gold.requests_daily", requests)
    audience = blog.audience(lake, days=400)
    assert audience is not None
    return audience


def counted(rows: Rows, dimension: str, sums: list[str], first: str, last: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(lambda: [0] * len(sums))
    for row in rows:
        if first[:10] <= row["event_date"] <= last[:10]:
            found[row[dimension]] = [
                before + int(row[name]) if name else before + 1
                for before, name in zip(found[row[dimension]], sums, strict=True)
            ]
    return found


@pytest.mark.parametrize(
    ("name", "sums"),
    [
        ("entry_page", ["", "bounced", "pages"]),
        ("exit_page", ["", "bounced", "pages"]),
        ("path", ["", "pages"]),
        ("campaign", ["displays", "events", "displays_alone"]),
    ],
)
def test_every_daily_ranking_equals_a_count(
    found: Audience, sessions: Rows, campaigns: Rows, name: str, sums: list[str]
) -> None:
    rows = {"campaign": campaigns, "path": [row for row in sessions if row["pages"] > 1]}.get(name, sessions)
    seen = 0
    for period in found.periods:
        expected = counted(rows, name, sums, period.first, period.last)
        (ranking,) = (each for each in period.rankings if each.name == name)
        assert len(ranking.rows) + ranking.others == len(expected)
        assert {row.name: list(row.values) for row in ranking.rows}.items() <= expected.items()
        assert [row.values[0] for row in ranking.rows] == sorted((row[0] for row in expected.values()), reverse=True)[
            : len(ranking.rows)
        ]
        if period.name in ("1", "7"):
            assert period.compared is not None
            earlier = counted(rows, name, sums, *period.compared)
            assert [row.before for row in ranking.rows] == [earlier.get(row.name, [0])[0] for row in ranking.rows]
            seen += 1
        else:
            assert {row.before for row in ranking.rows} == {None}, "a partial day is not compared with a whole one"
    assert seen == 2


NAMED: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "request_kind": lambda row: "crawlers" if row["kind"].startswith("crawler:") else row["kind"],
    "status": lambda row: row["status"],
    "crawler": lambda row: {
        "crawler:search": "search engines",
        "crawler:ai_crawler": "AI crawlers",
        "monitoring": "monitoring",
    }.get(row["kind"]),
    "host": lambda row: row["host"],
    "missing": lambda row: f"{row['status']} {row['path']}" if row["path"] else None,
    "broken_link": lambda row: (
        f"{row['referral_host']} → {row['path']}"
        if row["path"] and row["referral_host"] != "direct" and row["method"] in ("GET", "HEAD")
        else None
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_every_ranking_of_requests_equals_a_count(found: Audience, requests: Rows, name: str) -> None:
    rows = [{**row, "name": named} for row in requests if (named := NAMED[name](row)) is not None]
    for period in found.periods:
        expected = counted(rows, "name", ["requests", "bytes"], period.first, period.last)
        (ranking,) = (each for each in period.rankings if each.name == f"requests_by_{name}")
        assert len(ranking.rows) + ranking.others == len(expected)
        assert {row.name: list(row.values) for row in ranking.rows}.items() <= {
            each: [count, round(size / 1000)] for each, (count, size) in expected.items()
        }.items()
    whole = sum(found.history.rankings[f"requests_by_{name}"].others, 0) + sum(
        sum(flat[1::2]) for flat in found.history.rankings[f"requests_by_{name}"].counts
    )
    assert whole == sum(row["requests"] for row in rows)


def test_virtual_hosts_are_the_blogs_own(tmp_path: Path, requests: Rows) -> None:
    lake = Lake(root=str(tmp_path))
    views = [
        View(time=START + timedelta(days=2), visit=host, visitor=host, page="/", host=host)
        for host in ("blog.example", "shop.example", "probed.example")
    ]
    write(lake, views)
    probe = {**requests[0], "host": "probed.example", "kind": "page", "status": "200", "path": "", "requests": 1}
    write_days(lake, "gold.requests_daily", [*requests, probe])
    audience = blog.audience(lake, days=400)
    assert audience is not None
    (hosts,) = (each for each in audience.periods[-1].rankings if each.name == "referral_host")
    # A host name invented by a client receives too small a share of the requests.
    assert [row.name for row in hosts.rows] == ["probed.example"]
    assert [row.name for row in hosts.apart] == ["blog.example, this blog", "shop.example, this blog"]


def _names(rankings: list[Ranking]) -> list[str]:
    return [each.name for each in rankings]


def test_a_blog_without_gold_has_no_daily_rankings(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    write(lake, random_views(30, seed=3))
    audience = blog.audience(lake, days=400)
    assert audience is not None
    columns = ["page", "referral_host", "referral_kind", "utm", "country", "browser", "device_type", "system"]
    assert _names([*audience.periods[0].rankings]) == columns
    shown = {name for each in audience.sections for name in each.rankings}
    assert {"entry_page", "exit_page", "path", "campaign"} <= shown


def test_a_range_of_days_is_counted_from_the_history(found: Audience, sessions: Rows, campaigns: Rows) -> None:
    several = [row for row in sessions if row["pages"] > 1]
    for name, rows, column in (
        ("entry_page", sessions, ""),
        ("path", several, ""),
        ("campaign", campaigns, "displays"),
    ):
        by_day = found.history.rankings[name]
        for first, last in ((0, 0), (3, 9), (0, DAYS - 1)):
            expected = counted(rows, name, [column], days()[first], days()[last])
            sums = {
                each: sum(count for day, count in zip(flat[::2], flat[1::2], strict=True) if first <= day <= last)
                for each, flat in zip(by_day.names, by_day.counts, strict=True)
            }
            assert {each: [count] for each, count in sums.items() if count} == {
                each: numbers for each, numbers in expected.items() if numbers[0]
            }
            assert sum(by_day.others) == 0
