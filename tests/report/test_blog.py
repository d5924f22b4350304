"""Each figure about the blog equals a plain count over the page views of its period."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from assets.report import blog, history
from assets.report.page_views import PageViews
from assets.report.ranked_rows import SHOWN
from assets.report.referrers import Referrers, known
from blogdata.lake.lake import Lake
from blogdata.report.elements import Audience, ReportPeriod
from page_view_rows import OWN, PAGES, START, View, counted, random_views, write

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
    found = blog.audience(lake, days=days)
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
    assert [(each.name, each.first, each.last) for each in found.periods] == [
        ("today", "2026-03-14T00", "2026-03-14T06"),
        ("1", "2026-03-13T00", "2026-03-13T23"),
        ("7", "2026-03-07T00", "2026-03-13T23"),
        ("28", "2026-02-14T00", "2026-03-13T23"),
        ("all", "2026-01-05T00", "2026-03-14T06"),
    ]
    assert [each.compared for each in found.periods] == [
        ("2026-03-07T00", "2026-03-07T06"),
        ("2026-03-06T00", "2026-03-06T23"),
        ("2026-02-28T00", "2026-03-06T23"),
        ("2026-01-17T00", "2026-02-13T23"),
        None,
    ]


def test_every_figure_equals_a_plain_count(found: Audience, views: list[View]) -> None:
    for period in found.periods:
        expected = counted(views, period.first, period.last)
        assert values(period) == {name: pytest.approx(expected[name]) for name in values(period)}
        if period.compared is not None:
            earlier = counted(views, *period.compared)
            known = {figure.name: figure.before for figure in period.figures if figure.before is not None}
            assert known == {name: pytest.approx(earlier[name]) for name in known}
            assert {"views", "visits", "visitors", "bounce"} <= set(known)


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
            earlier = counted(views, *period.compared)[ranking.name] if period.compared else None
            for row in (*ranking.rows, *ranking.apart):
                name = apart.get(row.name, row.name)
                assert list(row.values) == groups[name]
                assert row.share == row.values[0] / expected["views"]
                assert row.before == (None if earlier is None else earlier.get(name, [0])[0])
            if not ranking.others and len(ranked) <= SHOWN:
                assert sum(row.share for row in (*ranking.rows, *ranking.apart)) == pytest.approx(1)


def test_every_point_of_a_chart_equals_a_count(found: Audience, views: list[View]) -> None:
    for period in found.periods:
        for chart in period.charts:
            # A slot ends where the next begins; a day without page views is on the chart as well.
            starts = [key if len(key) > 10 else f"{key}T00" for key in chart.keys]
            lasts = [before(start) for start in starts[1:]] + [period.last]
            length = {"hours": 1, "days": 24, "weeks": 7 * 24, "months": 31 * 24}[chart.name]
            assert len(starts) >= hours(starts[0], period.last) / length
            for at in range(0, len(starts), max(1, len(starts) // 40)):
                expected = counted(views, starts[at], lasts[at])
                assert {line.name: line.values[at] for line in chart.lines} == {
                    name: expected[name] for name in ("views", "visits", "visitors", "new")
                }


def before(hour: str) -> str:
    return f"{datetime.fromisoformat(f'{hour}:00') - timedelta(hours=1):%Y-%m-%dT%H}"


def hours(first: str, last: str) -> int:
    span = datetime.fromisoformat(f"{last}:00") - datetime.fromisoformat(f"{first}:00")
    return int(span / timedelta(hours=1)) + 1


def test_a_long_history_has_weeks_and_months(found: Audience) -> None:
    charts = {period.name: {chart.name: chart.keys for chart in period.charts} for period in found.periods}
    assert {name: list(keys) for name, keys in charts.items()} == {
        "today": ["hours"],
        "1": ["hours"],
        "7": ["days", "hours"],
        "28": ["days", "hours"],
        "all": ["days", "weeks", "months"],
    }
    assert charts["all"]["months"] == ["2026-01-05", "2026-02-01", "2026-03-01"]
    assert charts["all"]["weeks"][:2] == ["2026-01-05", "2026-01-12"]


def test_weeks_stand_beside_those_before(tmp_path: Path) -> None:
    # From a Wednesday on: 91 days, and the 91 days before them.
    begins = START + timedelta(days=2)
    views = [View(time=begins + timedelta(days=day), visit=f"v{day}", visitor="u", page="/") for day in range(182)]
    views.append(View(time=views[-1].time + timedelta(hours=23), visit="last", visitor="u", page="/"))
    (quarter,) = [each for each in audience(tmp_path, views).periods if each.name == "90"]
    (weeks,) = [chart for chart in quarter.charts if chart.name == "weeks"]
    lines = {line.name: (line.values, line.before) for line in weeks.lines}
    whole = [7] * 12
    assert (weeks.keys[:2], weeks.keys[-1]) == (["2026-04-09", "2026-04-13"], "2026-07-06")
    assert lines["views"] == ([4, *whole, 3], [4, *whole, 2])
    assert lines["visitors"] == ([1] * 14, [1] * 14)


def test_the_hours_of_the_week_are_means(found: Audience, views: list[View]) -> None:
    week = next(period for period in found.periods if period.name == "7")
    (grid,) = week.grids
    for row, name in enumerate(grid.rows):
        for hour in range(24):
            matching = [
                view
                for view in views
                if week.first <= view.hour <= week.last and f"{view.time:%a %H}" == f"{name} {hour:02}"
            ]
            assert grid.values[row][hour] == len(matching)


def test_new_visitors_are_compared_with_enough_history(tmp_path: Path, found: Audience) -> None:
    befores = {each.name: {figure.name: figure.before for figure in each.figures}["new"] for each in found.periods}
    assert befores["1"] is not None
    assert befores["28"] is None
    assert befores["7"] is not None


def test_a_short_history_has_few_periods(tmp_path: Path) -> None:
    hour = audience(tmp_path / "hour", [View(time=START, visit="v", visitor="u", page="/")])
    assert [(each.name, each.label) for each in hour.periods] == [("today", "Newest day, so far"), ("all", "All of it")]
    (period,) = [each for each in hour.periods if each.name == "all"]
    assert values(period) == {
        "views": 1,
        "visits": 1,
        "visitors": 1,
        "new": 1,
        "returning": 0,
        "views_per_visit": 1.0,
        "bounce": 1.0,
        "seconds": None,
    }
    assert period.grids == [], "the hours of one day are those of its chart"
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
        ([["a.example", "b.example", "c.example"], ["c.example", "d.example"]], set()),
        ([["direct", "direct"], ["direct", "direct", "direct"]], set()),
        ([["news.example"], ["news.example"]], set()),
    ],
)
def test_the_blogs_own_hosts_are_found_by_what_they_do(tmp_path: Path, visits: list[list[str]], own: set[str]) -> None:
    lake = Lake(root=str(tmp_path))
    write(lake, [view for number, hosts in enumerate(visits) for view in visit(f"v{number}", *hosts)])
    found = PageViews.read(lake, None, known())
    assert found is not None
    assert found.own_hosts == own


def test_the_settings_name_the_blogs_own_hosts_and_spam(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path / "lake"))
    write(lake, visit("v", "news.example", "www.blog.example", "a.buttons.example", "seo.example", "direct"))
    spam = tmp_path / "spammers.txt"
    spam.write_text("buttons.example\nseo.example\n", encoding="utf-8")
    found = blog.audience(lake, days=400, referrers=Referrers.read(["blog.example"], [spam]))
    assert found is not None
    rankings = {each.name: each for each in found.periods[-1].rankings}
    assert [row.name for row in rankings[HOST].rows] == ["news.example"]
    assert {row.name: row.values[0] for row in rankings[HOST].apart} == {
        "referrer spam": 2,
        "no referrer": 1,
        "www.blog.example, this blog": 1,
    }
    assert [row.name for row in rankings[KIND].rows] == ["other sites"]
    assert {row.name: row.values[0] for row in rankings[KIND].apart} == {
        "referrer spam": 2,
        "no referrer": 1,
        "this blog": 1,
    }


@pytest.mark.parametrize(("private", "shown"), [((True, True), False), ((False, False), False), ((True, False), True)])
def test_private_page_views_are_a_figure_where_visitors_were_asked(
    tmp_path: Path, private: tuple[bool, bool], shown: bool
) -> None:
    views = [View(time=START, visit=str(each), visitor="u", page="/", private=each) for each in private]
    period = audience(tmp_path, views).periods[-1]
    assert (values(period).get("private_views") == 1) == ("private_views" in values(period)) == shown


def test_a_ranking_of_which_nothing_is_known_is_left_out(tmp_path: Path) -> None:
    period = audience(tmp_path, [View(time=START, visit="v", visitor="u", page="/", country=None)]).periods[-1]
    assert [each.name for each in period.rankings] == ["page", HOST, "browser", "device_type", "system"]


def test_the_history_can_be_cut(tmp_path: Path, views: list[View]) -> None:
    cut = audience(tmp_path, views, days=10)
    assert cut.since >= "2026-03-05T00"
    kept = [view for view in views if view.hour >= "2026-03-05T00"]
    assert values(cut.periods[-1])["views"] == len(kept)


def test_nothing_published_has_no_figures(tmp_path: Path) -> None:
    assert blog.audience(Lake(root=str(tmp_path)), days=400) is None


def test_odd_names_are_cut_and_made_visible(tmp_path: Path) -> None:
    names = {"/" + "x" * 5000: "/" + "x" * 199 + "…", "/\u202egpj.exe": "/\N{REPLACEMENT CHARACTER}gpj.exe"}
    shown = audience(tmp_path, [View(time=START, visit="v", visitor="u", page=page) for page in (*names, PAGES[0])])
    assert {row.name for row in shown.periods[-1].rankings[0].rows} == {*names.values(), PAGES[0]}


def within(pairs: list[int], day: int, first: int) -> int:
    """Count visitors of a day who were not there on an earlier day of the range."""
    return sum(count for gap, count in zip(pairs[::2], pairs[1::2], strict=True) if gap == 0 or gap > day - first)


def test_any_range_of_days_is_counted_from_the_history(found: Audience, views: list[View]) -> None:
    known = found.history
    days = [f"{START + timedelta(days=day):%Y-%m-%d}" for day in range(len(known.days["views"]))]
    assert (known.first, days[-1]) == (days[0], "2026-03-14")
    draw = random.Random(8)
    for _ in range(60):
        first, last = sorted(draw.choices(range(len(days)), k=2))
        expected = counted(views, f"{days[first]}T00", f"{days[last]}T23")
        span = range(first, last + 1)
        assert sum(known.hours["views"][first * 24 : last * 24 + 24]) == expected["views"]
        assert sum(known.days["views"][first : last + 1]) == expected["views"]
        assert sum(known.private[first : last + 1]) == expected["private_views"]
        assert sum(within(list(known.visits[day]), day, first) for day in span) == expected["visits"]
        assert sum(within(list(known.visitors[day]), day, first) for day in span) == expected["visitors"]
        assert sum(known.days["new"][first : last + 1]) == expected["new"]
        bounced = 0
        for day in span:
            for before, after, count in zip(*(known.bounced[day][at::3] for at in range(3)), strict=True):
                is_alone = not 0 < before <= day - first and not 0 < after <= last - day
                bounced += count * is_alone
        assert bounced == pytest.approx((expected["bounce"] or 0) * expected["visits"])
        for name, by_day in known.rankings.items():
            groups = {each: group[0] for each, group in expected[name].items()}
            apart = APART.get(name, {})
            counts = {apart.get(each, each): 0 for each in by_day.names}
            for shown, flat in zip(by_day.names, by_day.counts, strict=True):
                on = zip(flat[::2], flat[1::2], strict=True)
                counts[apart.get(shown, shown)] += sum(count for day, count in on if day in span)
            assert {name: count for name, count in counts.items() if count} == groups
            assert set(by_day.others) == {0}


def test_names_that_are_rare_in_the_whole_history_are_summed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, views: list[View]
) -> None:
    monkeypatch.setattr(history, "MOST_NAMES", 5)
    by_day = audience(tmp_path, views).history.rankings["page"]
    most = Counter(view.page for view in views).most_common(5)
    assert [sum(flat[1::2]) for flat in by_day.counts] == [count for _, count in most]
    assert sum(by_day.others) == len(views) - sum(count for _, count in most)
