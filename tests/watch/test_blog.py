"""Each figure about the blog equals a plain count over the page views of its period."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from blogdata.table.lake import Lake
from blogdata.watch import blog_part
from blogdata.watch.counted_views import PageViews
from blogdata.watch.report_page import SHOWN, Audience, ReportPeriod
from page_view_rows import OWN, START, View, counted, random_views, write

HOST, KIND = "referral_host", "referral_kind"
APART = {
    HOST: {"no referrer": "direct", f"{OWN}, this blog": OWN},
    KIND: {"no referrer": "no referrer", "this blog": "this blog"},
    "utm": {"no campaign": "unknown"},
}
"""What stands apart from a ranking, by what it is shown as."""


def audience(folder: Path, views: list[View], *, days: int = 400) -> Audience:
    lake = Lake(root=str(folder))
    write(lake, views)
    found = blog_part.audience(lake, days=days)
    assert found is not None
    return found


def values(period: ReportPeriod) -> dict[str, float | None]:
    return {figure.name: figure.value for figure in period.figures}


@pytest.fixture(scope="module")
def views() -> list[View]:
    # Sixty-eight whole days and seven hours of another.
    return random_views(68 * 24 + 7, seed=3)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, views: list[View]) -> Audience:
    return audience(tmp_path_factory.mktemp("lake"), views)


def test_periods_are_whole_days_and_the_rest(found: Audience) -> None:
    assert [(period.name, period.first, period.last, period.compared) for period in found.periods] == [
        ("today", "2026-03-14T00", "2026-03-14T06", ("2026-03-07T00", "2026-03-07T06")),
        ("1", "2026-03-13T00", "2026-03-13T23", ("2026-03-06T00", "2026-03-06T23")),
        ("7", "2026-03-07T00", "2026-03-13T23", ("2026-02-28T00", "2026-03-06T23")),
        ("28", "2026-02-14T00", "2026-03-13T23", ("2026-01-17T00", "2026-02-13T23")),
        ("all", "2026-01-05T00", "2026-03-14T06", None),
    ]


def test_every_figure_equals_a_plain_count(found: Audience, views: list[View]) -> None:
    for period in found.periods:
        expected = counted(views, period.first, period.last)
        assert values(period) == {name: pytest.approx(expected[name]) for name in values(period)}
        if period.compared is not None:
            earlier = counted(views, *period.compared)
            known = {figure.name: figure.before for figure in period.figures if figure.before is not None}
            assert known == {name: pytest.approx(earlier[name]) for name in known}
            assert set(known) == set(values(period))


def test_every_ranking_equals_a_plain_count(found: Audience, views: list[View]) -> None:
    for period in found.periods:
        expected = counted(views, period.first, period.last)
        for ranking in period.rankings:
            groups = expected[ranking.name]
            shown_as = APART.get(ranking.name, {})
            apart = {row.name: shown_as[row.name] for row in ranking.apart}
            assert set(apart.values()) == groups.keys() & set(shown_as.values())
            ranked = {name: group for name, group in groups.items() if name not in apart.values()}
            assert len(ranking.rows) + ranking.others == len(ranked)
            assert {row.name: list(row.values) for row in ranking.rows}.items() <= ranked.items()
            shown = [row.values[0] for row in ranking.rows]
            assert shown == sorted((group[0] for group in ranked.values()), reverse=True)[: len(shown)]
            for row in (*ranking.rows, *ranking.apart):
                name = apart.get(row.name, row.name)
                assert list(row.values) == groups[name]
                assert row.share == row.values[0] / expected["views"]
            if not ranking.others and len(ranked) <= SHOWN:
                assert sum(row.share for row in (*ranking.rows, *ranking.apart)) == pytest.approx(1)


def test_every_point_of_a_chart_equals_a_count(found: Audience, views: list[View]) -> None:
    hours = {"today": 7, "1": 24}
    days = {"7": 7, "28": 28, "all": 69}
    assert {each.name: len(each.chart.keys) for each in found.periods} == hours | days
    for period in found.periods:
        assert period.chart.name == ("hours" if period.name in hours else "days")
        # A day without page views is on the chart as well.
        for at, key in enumerate(period.chart.keys):
            first, last = (key, key) if period.name in hours else (f"{key}T00", f"{key}T23")
            expected = counted(views, first, last)
            assert {name: values[at] for name, values in period.chart.lines.items()} == {
                name: expected[name] for name in ("views", "visits", "visitors")
            }


def test_a_short_history_has_few_periods(tmp_path: Path) -> None:
    hour = audience(tmp_path / "hour", [View(time=START, visit="v", visitor="u", page="/")])
    assert [(each.name, each.label) for each in hour.periods] == [("today", "Newest day, so far"), ("all", "All of it")]
    (period,) = [each for each in hour.periods if each.name == "all"]
    ones = dict.fromkeys(("views", "visits", "visitors", "views_per_visit", "bounce"), 1)
    assert values(period) == {**ones, "seconds": None}
    (hosts,) = [each for each in period.rankings if each.name == HOST]
    assert ([row.name for row in hosts.apart], hosts.rows) == (["no referrer"], [])


def visit(name: str, *hosts: str) -> list[View]:
    """Make a visit with one page view a minute, each from a host."""
    return [
        View(time=START + timedelta(minutes=minute), visit=name, visitor=name, page="/", host=host)
        for minute, host in enumerate(hosts)
    ]


@pytest.mark.parametrize(
    ("visits", "own"),
    [
        ([["direct", OWN, OWN], ["news.example", OWN]], {OWN}),
        # Most links lead to one or both names, and some to the other.
        ([["news.example", f"www.{OWN}", f"www.{OWN}", OWN], ["news.example", f"www.{OWN}"]], {OWN, f"www.{OWN}"}),
        # As in access logs, where visits after a pause may begin with links of the blog itself.
        ([[OWN, OWN], [OWN], ["search.example"], ["search.example", "direct", f"www.{OWN}"]], {OWN, f"www.{OWN}"}),
        # A reader opens three links of a link page; the blog's own pages send no referrer.
        ([["links.example", "links.example", "links.example"], ["links.example"], ["links.example"]], set()),
        ([["direct", "direct"], ["direct", "direct", "direct"]], set()),
    ],
)
def test_the_blogs_own_hosts_are_found_by_what_they_do(tmp_path: Path, visits: list[list[str]], own: set[str]) -> None:
    lake = Lake(root=str(tmp_path))
    write(lake, [view for number, hosts in enumerate(visits) for view in visit(f"v{number}", *hosts)])
    found = PageViews.read(lake, None)
    assert found is not None
    assert found.own_hosts == own


def test_the_settings_name_the_blogs_own_hosts(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path / "lake"))
    write(lake, visit("v", "news.example", "www.blog.example", "direct"))
    found = blog_part.audience(lake, days=400, own_hosts=["blog.example"])
    assert found is not None
    rankings = {each.name: each for each in found.periods[-1].rankings}
    assert [row.name for row in rankings[HOST].rows] == ["news.example"]
    assert {row.name for row in rankings[HOST].apart} == {"no referrer", "www.blog.example, this blog"}
    assert [row.name for row in rankings[KIND].rows] == ["other sites"]
    assert {row.name for row in rankings[KIND].apart} == {"no referrer", "this blog"}
