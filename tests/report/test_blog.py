"""Each number about the blog equals a plain count over the page views of its period."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from assets.report import blog
from lake.lake import Lake
from page_view_rows import PAGES, START, View, counted, random_views, write
from report.elements import Audience, Period


def audience(folder: Path, views: list[View], *, days: int = 400) -> Audience:
    lake = Lake(root=str(folder))
    write(lake, views)
    found = blog.audience(lake, days=days)
    assert found is not None
    return found


def values(period: Period) -> dict[str, float | None]:
    return {figure.name: figure.value for figure in period.figures}


@pytest.fixture(scope="module")
def views() -> list[View]:
    # Sixty-eight whole days and seven hours of one more.
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
            assert len(ranking.rows) + ranking.others == len(groups)
            assert {row.name: list(row.values) for row in ranking.rows}.items() <= groups.items()
            shown = [row.values[0] for row in ranking.rows]
            assert shown == sorted((group[0] for group in groups.values()), reverse=True)[: len(shown)]
            assert [row.share for row in ranking.rows] == [count / expected["views"] for count in shown]
            earlier = counted(views, *period.compared)[ranking.name] if period.compared else None
            for row in ranking.rows:
                assert row.before == (None if earlier is None else earlier.get(row.name, [0])[0])


def test_every_point_of_a_chart_equals_a_count(found: Audience, views: list[View]) -> None:
    for period in found.periods:
        for chart in period.charts:
            # A day without page views is on the chart all the same.
            step = timedelta(hours=1 if chart.name == "hours" else 24)
            assert len(chart.keys) == len(set(chart.keys)) >= (period.last > period.first)
            for at, key in list(enumerate(chart.keys))[:: max(1, len(chart.keys) // 40)]:
                last = key if step == timedelta(hours=1) else f"{key}T23"
                expected = counted(views, key if len(key) > 10 else f"{key}T00", last)
                assert {line.name: line.values[at] for line in chart.lines} == {
                    name: expected[name] for name in ("views", "visits", "visitors", "new")
                }


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
        "private_views": 0,
    }


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
