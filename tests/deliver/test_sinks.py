"""A Dagster asset that serves several datasets from a database: retries, check and days; without Spark.

Pattern: Transactional Writer.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest

from blogdata.contract.contract import Read
from blogdata.contract.partitions import Grain
from blogdata.contract.schema import Partitioning
from blogdata.contract.writes import Serve
from blogdata.deliver import sinks, transactional_sink
from blogdata.ledger import deliveries as core
from blogdata.operate import postgres
from blogdata.operate.config import Settings
from blogdata.planning.reach import SAME
from blogdata.runs.dataset import calendar
from blogdata.runs.lake_resource import LakeResource
from published import deployment, publish
from resources.postgres_resource import PostgresResource
from toy import declared

MONDAY, TUESDAY, WEDNESDAY = DAYS = ("2026-01-05", "2026-01-06", "2026-01-07")


SALES, RETURNS = BOTH = ("gold.sales", "gold.returns")
DAILY = Partitioning(column="day", grain=Grain.DAY)


def served(schema: str) -> dg.AssetsDefinition:
    """Make the asset that serves both datasets."""
    fields = "day STRING NOT NULL, rows BIGINT NOT NULL"
    contracts = [declared(name, fields, key=("day",), partitioning=DAILY) for name in BOTH]
    reads = tuple(Read(dataset=name, reach=SAME) for name in BOTH)
    daily = replace(
        contracts[0], dataset=f"{schema}.daily", columns=(), key=(), reads=reads, write=Serve(schema=schema)
    )
    return sinks.Sink(contract=daily, served=contracts).asset(calendar(MONDAY), "test")


class Shop:
    """A lake with two datasets by day, and the asset that serves both."""

    def __init__(self, home: Settings, folder: Path) -> None:
        self.settings = home
        self.schema = f"shop_{folder.name}"
        self.access: LakeResource = deployment(folder / "home")
        self.asset = served(self.schema)

    def publish(self, *days: str, datasets: tuple[str, ...] = BOTH) -> None:
        for dataset in datasets:
            there = self.access.lake.caught_up(dataset)
            if there is not None:
                there.delete(" OR ".join(f"day = '{day}'" for day in days))
            publish(self.access.lake, dataset, "day", dict.fromkeys(days, 1))

    def run(self, first: str, last: str) -> dg.ExecuteInProcessResult:
        resources = {"lake": self.access, "postgres": PostgresResource(home=str(self.settings.home))}
        span = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
        return dg.materialize([self.asset], tags=span, resources=resources, raise_on_error=False)

    def shown(self) -> dict[str, list[str]]:
        with psycopg.connect(postgres.running_address(self.settings).complete()) as connection:
            return {
                dataset: [day for (day,) in connection.execute(f"SELECT day FROM {self.schema}.{table} ORDER BY day")]
                for dataset in BOTH
                for table in [dataset.partition(".")[2]]
            }

    def stale(self) -> list[str]:
        with psycopg.connect(postgres.running_address(self.settings).complete()) as connection:
            served = transactional_sink.served(connection, self.schema)
            return sinks.unserved(self.access.lake, self.access.events, BOTH, served)


@pytest.fixture
def shop(settings: Settings, postgres_server: str, tmp_path: Path, request: pytest.FixtureRequest) -> Shop:
    folder = tmp_path / f"t{abs(hash(request.node.name))}"
    return Shop(settings, folder)


def checks(result: dg.ExecuteInProcessResult) -> list[bool]:
    return [event.passed for event in result.get_asset_check_evaluations()]


def test_one_run_serves_and_reports_each_day(shop: Shop) -> None:
    shop.publish(*DAYS)
    assert shop.stale() == list(DAYS)
    result = shop.run(MONDAY, TUESDAY)
    assert (result.success, checks(result)) == (True, [True])
    assert shop.shown() == {SALES: [MONDAY, TUESDAY], RETURNS: [MONDAY, TUESDAY]}
    seen = {
        event.partition: event.metadata["dagster/partition_row_count"].value
        for event in result.asset_materializations_for_node(f"{shop.schema}__daily")
    }
    assert seen == {MONDAY: 2, TUESDAY: 2}
    assert shop.stale() == [WEDNESDAY]


def test_a_load_that_is_cut_off_goes_on_where_it_ended(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the database lists as loaded is not copied again (Manifest)."""
    read, copied, cut_at = LakeResource.batches, list[tuple[str, str]](), (RETURNS, TUESDAY)

    def batches(lake: LakeResource, dataset: str, version: int, column: str, day: str) -> Iterator[Any]:
        copied.append((dataset, day))
        yield from read(lake, dataset, version, column, day)
        if copied[-1] == cut_at:
            raise RuntimeError("the process dies here")

    shop.publish(*DAYS)
    monkeypatch.setattr(LakeResource, "batches", batches)
    assert not shop.run(MONDAY, WEDNESDAY).success
    assert shop.shown() == {SALES: [MONDAY], RETURNS: [MONDAY]}
    cut_at = ("", "")
    for left in ([TUESDAY, WEDNESDAY], []):
        copied.clear()
        assert shop.run(MONDAY, WEDNESDAY).success
        assert copied == [(dataset, day) for day in left for dataset in BOTH]
    assert shop.shown() == {SALES: list(DAYS), RETURNS: list(DAYS)}


def test_unrecorded_deliveries_are_recorded_by_the_next_run(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*given: Any, **more: Any) -> None:
        raise RuntimeError("the process dies here")

    def noted() -> list[tuple[str, dict[str, int], int, str | None]]:
        found = core.deliveries(shop.access.events, f"{shop.schema}.daily")
        return [(one.partition, dict(one.inputs), one.rows, one.job) for one in found]

    shop.publish(MONDAY, TUESDAY)
    with monkeypatch.context() as patch:
        patch.setattr(sinks, "record_deliveries", die)
        assert not shop.run(MONDAY, MONDAY).success
    assert (shop.shown()[SALES], noted()) == ([MONDAY], [])
    for _ in range(2):
        assert shop.run(TUESDAY, TUESDAY).success
    versions = {name: shop.access.lake.version(name) for name in BOTH}
    # The first run belongs to an instance that no longer exists.
    assert noted() == [(MONDAY, versions, 2, None), (TUESDAY, versions, 2, "__ephemeral_asset_job__")]


def test_refused_days_are_named_and_others_served(shop: Shop) -> None:
    shop.publish(*DAYS)
    assert shop.run(MONDAY, MONDAY).success
    with psycopg.connect(postgres.up(shop.settings)) as connection:
        connection.execute(f"ALTER TABLE {shop.schema}.returns ADD CHECK (day <> '{TUESDAY}')")
    result = shop.run(TUESDAY, WEDNESDAY)
    assert (result.success, checks(result)) == (False, [False])
    assert shop.shown() == {SALES: [MONDAY, WEDNESDAY], RETURNS: [MONDAY, WEDNESDAY]}
    (failed,) = result.filter_events(lambda event: event.is_step_failure)
    assert f"{TUESDAY}" in str(failed.step_failure_data)


def test_a_rebuilt_lake_makes_served_days_stale(shop: Shop) -> None:
    for _ in range(3):
        shop.publish(MONDAY, TUESDAY)
    assert shop.run(MONDAY, TUESDAY).success
    shutil.rmtree(shop.access.lake.root)
    shop.publish(MONDAY, TUESDAY)
    assert shop.stale() == [MONDAY, TUESDAY]
    assert shop.run(MONDAY, TUESDAY).success
    assert shop.stale() == []
    shop.publish(TUESDAY)
    assert shop.stale() == [TUESDAY]
