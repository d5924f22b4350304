"""The forecast uses complete days only, and names columns it needs that changed; without Spark.

Pattern: Isolated Sequencer.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from analytics import assets, gold
from analytics.gold import FoldersResource, GoldChanged

MONDAY = "2026-01-05"


def report(gold: Path, rows: Mapping[str, tuple[int | None, float]], **columns: pa.Array) -> None:
    values, shares = zip(*rows.values(), strict=True)
    table = {"event_date": list(rows), "metric": ["views"] * len(rows), "value": values, "completeness": shares}
    given = {name: column for name, column in {**table, **columns}.items() if column is not None}
    write_deltalake(gold / "daily_report", pa.table(given), mode="overwrite", schema_mode="overwrite")


def run(places: FoldersResource, asset: dg.AssetsDefinition, partition: str | None = None) -> dg.ExecuteInProcessResult:
    return dg.materialize([asset], resources={"places": places}, partition_key=partition)


@pytest.fixture
def places(tmp_path: Path) -> FoldersResource:
    return FoldersResource(gold=str(tmp_path / "gold"), own=str(tmp_path / "own"))


def test_a_partial_day_makes_no_forecast_smaller() -> None:
    found = assets.forecasts({"2026-01-05": 100, "2026-01-06": None, "2026-01-07": None})
    assert found[-1] == {"day": "2026-01-08", "views": 100.0, "actual": None}
    # A partial day is not compared with a forecast either.
    assert [one["actual"] for one in found] == [None, None, None]


def test_the_table_names_the_report_it_was_made_of(places: FoldersResource) -> None:
    report(Path(places.gold), {MONDAY: (100, 1.0)})
    report(Path(places.gold), {MONDAY: (100, 1.0), "2026-01-06": (300, 1.0)})
    assert run(places, assets.views_forecast).success
    table = DeltaTable(Path(places.own) / "views_forecast")
    assert table.history(1)[0]["gold.daily_report"] == "1"
    rows = table.to_pyarrow_table().to_pylist()
    assert [tuple(row.values()) for row in rows] == [("2026-01-06", 100.0, 300), ("2026-01-07", 200.0, None)]


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"completeness": None}, "has no column completeness any more"),
        ({"value": pa.array([1.5])}, "value is double, and was long"),
    ],
)
def test_a_changed_table_is_refused_by_name(
    places: FoldersResource, columns: Mapping[str, pa.Array], named: str
) -> None:
    report(Path(places.gold), {MONDAY: (100, 1.0)})
    assert run(places, assets.views_forecast).success
    report(Path(places.gold), {MONDAY: (1, 1.0)}, **columns)
    with pytest.raises(GoldChanged, match=f"^gold.daily_report: {named}; ask its owner, team:platform$"):
        run(places, assets.views_forecast)
    assert DeltaTable(Path(places.own) / "views_forecast").version() == 0


def test_the_newsletter_names_incomplete_days() -> None:
    names = ("event_date", "page", "events", "hours_present")
    rows = [(day, "/a|b", 2, 24) for day in assets.days_of(MONDAY)[:6]]
    rows += [(MONDAY, "/c", 7, 24), ("2026-01-06", "/d", 1, 9)]
    text = assets.newsletter_of(MONDAY, [dict(zip(names, row, strict=True)) for row in rows])
    assert "Figures are too small: 2026-01-06 has 9 of 24 hours; 2026-01-11 is missing." in text
    assert "| 1 | /a\\|b | 12 |\n| 2 | /c | 7 |\n| 3 | /d | 1 |" in text


def test_weeks_begin_with_the_first_published_day(places: FoldersResource) -> None:
    gold_tables = Path(places.gold)
    assert gold.first_day(gold_tables) is None
    now = datetime(2026, 1, 20, 6, tzinfo=timezone.utc)
    pages = pa.table({"event_date": ["2026-01-09", "2026-01-07"], "page": ["/a", "/a"]})
    write_deltalake(gold_tables / "page_stats", pages, partition_by="event_date")
    weeks = assets.weeks_since(gold.first_day(gold_tables))
    assert weeks.get_partition_keys(now) == [MONDAY, "2026-01-12"]
    assert assets.weeks_since(None).get_partition_keys() == [], "weeks before the first page views are not missing"
