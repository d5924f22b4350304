from pathlib import Path

import pytest

from blogdata.contract.partitions import Grain, coarser
from blogdata.patterns.error_management.static_late_data_integrator import Lookback, due, too_late
from blogdata.runs import driver
from published import deployment, publish
from quality.contracts import CONTRACTS
from runs.stepped import step

FOUR_DAYS = Lookback(length=4, grain=Grain.DAY)


@pytest.mark.parametrize("day", [10, 11, 12])
def test_table_3_3_executions_take_four_earlier_days(day: int) -> None:
    days = [f"2024-10-{number:02}" for number in range(1, 20)]
    assert due(days[day - 1], days, FOUR_DAYS) == set(days[day - 5 : day])


def test_days_before_the_window_are_final() -> None:
    fortnight = Lookback(length=14, grain=Grain.DAY)
    assert fortnight.is_final("2024-12-15", "2024-12-31")
    assert not fortnight.is_final("2024-12-17", "2024-12-31")
    assert due("2024-12-31", {"2024-12-15", "2024-12-17"}, fortnight) == {"2024-12-31", "2024-12-17"}


@pytest.mark.parametrize(
    ("dataset", "read", "days"),
    [
        ("gold.referral_stats", "silver.visits_enriched", [3, 2, 1]),
        ("silver.sessions", "silver.visits", [1, 2, 3]),
    ],
)
def test_a_run_that_commits_day_by_day_keeps_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset: str, read: str, days: list[int]
) -> None:
    monkeypatch.setattr(driver, "MOST_ROWS", 1)
    lake = deployment(tmp_path)
    column, grain = CONTRACTS[dataset].partition_column, CONTRACTS[dataset].grain
    hours = [f"2026-01-0{day}T10" for day in (1, 2, 3)]
    old = publish(lake.lake, read, "event_hour", dict.fromkeys(hours, 1))
    assert grain is not None
    integrated = {coarser(hour, Grain.HOUR, grain): 1 for hour in hours}
    publish(lake.lake, dataset, column, integrated, inputs={read: old})
    publish(lake.lake, read, "event_hour", dict.fromkeys(hours, 2))
    computed = step(lake, dataset, lambda keys: None)
    assert [[int(key[8:10]) for key in keys] for keys in computed] == [[day] for day in days]


def test_only_rows_before_the_window_are_too_late() -> None:
    arrived = {"2024-10-01": 12, "2024-10-02": 7, "2024-10-08": 9, "2024-10-10": 5}
    integrated = {"2024-10-01": 10, "2024-10-02": 7, "2024-10-08": 8}
    assert too_late(arrived, integrated, "2024-10-10", FOUR_DAYS) == {"2024-10-01": 2}
