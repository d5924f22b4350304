"""The forecast uses complete days only, and names columns it needs that changed; without Spark.

Pattern: Isolated Sequencer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from analytics import assets
from analytics.gold import FoldersResource

MONDAY = "2026-01-05"


def report(gold: Path, rows: Mapping[str, tuple[int | None, float]], **columns: pa.Array) -> None:
    table = {
        "event_date": pa.array(list(rows)),
        "metric": pa.array(["views"] * len(rows)),
        "value": pa.array([value for value, _ in rows.values()], pa.int64()),
        "completeness": pa.array([share for _, share in rows.values()], pa.float64()),
        **columns,
    }
    found = {name: column for name, column in table.items() if column is not None}
    write_deltalake(gold / "daily_report", pa.table(found), mode="overwrite", schema_mode="overwrite")


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


def test_a_forecast_needs_a_complete_day_of_the_seven_before_it() -> None:
    found = assets.forecasts({"2026-01-05": 700, **{f"2026-01-{day:02d}": None for day in range(6, 13)}})
    assert [one["views"] for one in found[-2:]] == [700.0, None]
    assert assets.forecasts({}) == []


def test_the_table_names_the_report_it_was_made_of(places: FoldersResource) -> None:
    report(Path(places.gold), {MONDAY: (100, 1.0)})
    report(Path(places.gold), {MONDAY: (100, 1.0), "2026-01-06": (300, 1.0)})
    assert run(places, assets.views_forecast).success
    table = DeltaTable(Path(places.own) / "views_forecast")
    assert table.history(1)[0]["gold.daily_report"] == "1"
    rows = table.to_pyarrow_table().to_pylist()
    assert [(row["day"], row["views"], row["actual"]) for row in rows] == [
        ("2026-01-06", 100.0, 300),
        ("2026-01-07", 200.0, None),
    ]


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"completeness": None}, "has no column completeness any more"),
        ({"value": pa.array([1.5])}, "value is double, and was long"),
    ],
)
def test_a_changed_table_fails_a_check_and_nothing_else(
    places: FoldersResource, columns: Mapping[str, pa.Array], named: str
) -> None:
    report(Path(places.gold), {MONDAY: (100, 1.0)})
    assert run(places, assets.views_forecast).success
    report(Path(places.gold), {MONDAY: (1, 1.0)}, **columns)
    result = run(places, assets.views_forecast)
    assert result.success, "by contract, not by crash"
    (check,) = result.get_asset_check_evaluations()
    assert (check.passed, check.description) == (False, f"gold.daily_report: {named}; ask its owner, team:platform")
    assert result.get_asset_materialization_events() == []
    assert DeltaTable(Path(places.own) / "views_forecast").version() == 0


def test_folders_follow_the_platforms_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOGDATA_HOME", "/data")
    places = FoldersResource()
    assert (str(places.gold_folder), str(places.own_folder)) == ("/data/lake/gold", "/data/analytics")
    monkeypatch.setenv("ANALYTICS_HOME", "/o")
    assert str(places.own_folder) == "/o"
