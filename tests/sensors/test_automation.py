"""Automation conditions over the real lineage: what runs by itself when partitions are published."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone

import dagster as dg
import pytest

from patterns.core.partitions import Grain, finer

DAY = "2026-01-05"
NOW = datetime(2026, 11, 21, 4, 30, tzinfo=timezone.utc)
GOLD_OF_A_DAY = ("gold/visits_cube_daily", "gold/page_stats", "gold/referral_stats")
ALL = dg.AssetSelection.assets("hourly", "daily")
BELOW = dg.AssetSelection.groups("bronze", "silver", "gold")


def key(name: str) -> dg.AssetKey:
    return dg.AssetKey(name.split("/"))


class Automation:
    """The automation sensor's ticks, one after the other."""

    def __init__(self, defs: dg.Definitions, instance: dg.DagsterInstance) -> None:
        self._defs, self._instance, self._cursor = defs, instance, None
        self.tick()

    def published(self, name: str, partitions: Iterable[str | None]) -> None:
        for partition in partitions:
            self._instance.report_runless_asset_event(dg.AssetMaterialization(key(name), partition=partition))

    def tick(self) -> dict[str, set[str | None]]:
        result = dg.evaluate_automation_conditions(
            defs=self._defs, instance=self._instance, asset_selection=BELOW, cursor=self._cursor, evaluation_time=NOW
        )
        self._cursor = result.cursor
        return {
            requested.to_user_string(): result.get_requested_partitions(requested)
            for requested in sorted({one.key for one in result.results if one.true_subset.size})
        }


@pytest.fixture
def automation(defs: dg.Definitions, instance: dg.DagsterInstance) -> Automation:
    return Automation(defs, instance)


def test_nothing_published_runs_nothing(automation: Automation) -> None:
    assert automation.tick() == {}


def test_a_day_waits_for_its_24th_hour(automation: Automation) -> None:
    hours = finer(DAY, Grain.DAY, Grain.HOUR)
    for slice_ in (hours[:10], hours[10:23]):
        automation.published("silver/visits_enriched", slice_)
        assert automation.tick() == {}
    automation.published("silver/visits_enriched", hours[23:])
    assert automation.tick() == {name: {DAY} for name in GOLD_OF_A_DAY}


def test_a_day_that_was_asked_for_is_not_asked_for_again(automation: Automation) -> None:
    automation.published("silver/visits_enriched", finer(DAY, Grain.DAY, Grain.HOUR))
    assert set(automation.tick()) == set(GOLD_OF_A_DAY)
    assert automation.tick() == {}


def test_a_late_hour_runs_its_old_day_again_and_no_other(automation: Automation) -> None:
    for day in (DAY, "2026-01-06"):
        automation.published("silver/visits_enriched", finer(day, Grain.DAY, Grain.HOUR))
        for gold in GOLD_OF_A_DAY:
            automation.published(gold, [day])
    automation.tick()
    automation.published("silver/visits_enriched", [f"{DAY}T07"])
    # What becomes final takes late rows in by its schedule, not whenever they come.
    assert automation.tick() == {name: {DAY} for name in GOLD_OF_A_DAY if name != "gold/referral_stats"}


def test_dagsters_eager_condition_would_never_run_a_day_that_is_over(instance: dg.DagsterInstance) -> None:
    hours = dg.HourlyPartitionsDefinition(start_date="2026-01-01T00", fmt="%Y-%m-%dT%H", end_offset=1)
    days = dg.DailyPartitionsDefinition(start_date="2026-01-01", end_offset=1)

    @dg.asset(partitions_def=hours)
    def hourly() -> None: ...

    @dg.asset(partitions_def=days, deps=[hourly], automation_condition=dg.AutomationCondition.eager())
    def daily() -> None: ...

    naive = dg.Definitions(assets=[hourly, daily])
    first = dg.evaluate_automation_conditions(naive, instance, ALL, evaluation_time=NOW)
    for hour in finer(DAY, Grain.DAY, Grain.HOUR):
        instance.report_runless_asset_event(dg.AssetMaterialization("hourly", partition=hour))
    second = dg.evaluate_automation_conditions(naive, instance, ALL, cursor=first.cursor, evaluation_time=NOW)
    assert second.total_requested == 0


def test_a_week_waits_for_its_last_hour(automation: Automation) -> None:
    hours = finer(DAY, Grain.WEEK, Grain.HOUR)
    automation.published("silver/visits_enriched", hours[:-1])
    assert "gold/visits_cube_weekly" not in automation.tick()
    automation.published("silver/visits_enriched", hours[-1:])
    assert automation.tick()["gold/visits_cube_weekly"] == {DAY}


def test_a_published_hour_of_bronze_runs_what_lies_right_above_it(automation: Automation) -> None:
    automation.published("bronze/visits", [f"{DAY}T03"])
    asked = automation.tick()
    assert {name for name, partitions in asked.items() if partitions == {f"{DAY}T03"}} == set(asked)
    assert {"bronze/dead_letters", "silver/late_visits", "silver/visits"} <= set(asked)


def test_a_delivery_of_users_makes_the_table_of_users_and_no_visit_again(automation: Automation) -> None:
    automation.published("silver/visits", [f"{DAY}T03"])
    automation.published("silver/visits_enriched", [f"{DAY}T03"])
    automation.tick()
    automation.published("bronze/users", [DAY])
    assert automation.tick() == {"silver/users": {None}, "silver/users_current": {DAY}}
    automation.published("silver/users", [None])
    # Visits are joined with the user as of the event: a newer history of users changes none of them.
    assert automation.tick() == {}
    automation.published("bronze/devices", [None])
    assert automation.tick() == {"silver/devices": {None}}


def test_enriched_visits_do_not_wait_for_users_that_never_come(automation: Automation) -> None:
    automation.published("silver/visits", [f"{DAY}T03"])
    assert automation.tick()["silver/visits_enriched"] == {f"{DAY}T03"}
