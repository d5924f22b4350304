"""Rankings of campaigns and requests equal plain counts over the days of the gold tables."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from assets.report import blog
from blogdata.lake.lake import Lake
from blogdata.report.page import Audience
from page_view_rows import START, random_requests, random_views, write, write_days

DAYS = 20
Rows = list[dict[str, Any]]


def days() -> list[str]:
    return [f"{START + timedelta(days=day):%Y-%m-%d}" for day in range(DAYS)]


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
def found(tmp_path_factory: pytest.TempPathFactory, campaigns: Rows, requests: Rows) -> Audience:
    lake = Lake(root=str(tmp_path_factory.mktemp("lake")))
    write(lake, random_views((DAYS - 1) * 24 + 7, seed=3))
    write_days(lake, "gold.campaign_stats", campaigns)
    write_days(lake, "gold.requests_daily", requests)
    audience = blog.audience(lake, days=400)
    assert audience is not None
    return audience


NAMED: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "campaign": lambda row: row["campaign"],
    "crawler": lambda row: {"crawler:search": "search", "crawler:ai_crawler": "ai crawler"}.get(row["kind"]),
    "broken_link": lambda row: (
        f"{row['referral_host']} → {row['path']}"
        if row["path"] and row["referral_host"] != "direct" and row["method"] in ("GET", "HEAD")
        else None
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_every_daily_ranking_equals_a_count(found: Audience, campaigns: Rows, requests: Rows, name: str) -> None:
    rows, sums = (
        (campaigns, ("displays", "events", "displays_alone")) if name == "campaign" else (requests, ("requests",))
    )
    for period in found.periods:
        expected: dict[str, list[int]] = {}
        for row in rows:
            named = NAMED[name](row)
            if named is not None and period.first[:10] <= row["event_date"] <= period.last[:10]:
                before = expected.get(named, [0] * len(sums))
                expected[named] = [count + row[each] for count, each in zip(before, sums, strict=True)]
        (ranking,) = (each for each in period.rankings if each.name == name)
        assert len(ranking.rows) + ranking.others == len(expected)
        assert {row.name: list(row.values) for row in ranking.rows}.items() <= expected.items()
        first = [row.values[0] for row in ranking.rows]
        assert first == sorted((numbers[0] for numbers in expected.values()), reverse=True)[: len(first)]
