"""What a person does and sees in the web UI, in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ui.served import Served

if TYPE_CHECKING:
    from ui.browser import Browser

pytestmark = [pytest.mark.ui, pytest.mark.slow, pytest.mark.timeout(900)]
RUN = 300.0


def choose(browser: Browser, asset: str, partitions: str) -> None:
    browser.open(f"/assets/{asset}", "Latest materialization")
    browser.click("Materialize…")
    browser.sees("Partition selection")
    browser.click("Show all partitions")
    browser.write("ex: ", partitions)


def test_the_lineage_shows_every_dataset(browser: Browser) -> None:
    browser.open("/assets/silver/visits_enriched?view=lineage&lineageDepth=9", "visits_enriched", "visits_cube_daily")
    browser.sees("hourly_access_logs")
    browser.picture("lineage")


def test_a_dataset_shows_its_columns_owner_and_patterns(browser: Browser) -> None:
    browser.open("/assets/silver/visits", "Row count", "event_hour", "One browsing session of one browser")
    browser.sees("pattern/windowed-deduplicator")
    browser.sees("analytics")
    browser.picture("asset")


def test_a_dataset_shows_that_its_contract_and_its_ledger_hold(browser: Browser) -> None:
    browser.open("/assets/silver/visits?view=checks", "Checks (2)", "contract", "ledger", "Passed")
    browser.open("/assets/silver/visits?view=checks&checkDetail=ledger", "left_out", "Rows in = rows out")
    browser.picture("checks")


def test_figures_of_the_partitions_are_plotted(browser: Browser) -> None:
    browser.open("/assets/silver/visits?view=overview", "Latest materialization")
    browser.click("Plots")
    browser.sees("rows/duplicates")
    browser.picture("plots")


def test_a_publication_shows_which_columns_its_columns_were_computed_from(browser: Browser, served: Served) -> None:
    browser.open("/assets/silver/visits_enriched?view=events", "Metadata")
    browser.sees("computed_from")
    browser.sees("silver.devices.full_name")
    browser.picture("columns")


def test_one_partition_is_materialized_from_its_page(browser: Browser, served: Served) -> None:
    choose(browser, "bronze/visits", f"{served.first}T05")
    browser.click("Launch 1 run")
    browser.until(
        lambda: [status for status, _ in served.runs(dagster__partition=f"{served.first}T05")] == ["SUCCESS"],
        "run that succeeds",
        RUN,
    )


def test_a_backfill_of_a_range_is_one_run(browser: Browser, served: Served) -> None:
    choose(browser, "silver/visits", f"[{served.first}T06...{served.first}T08]")
    browser.click("Launch backfill")
    span = {
        "dagster__asset_partition_range_start": f"{served.first}T06",
        "dagster__asset_partition_range_end": f"{served.first}T08",
    }
    browser.until(lambda: [status for status, _ in served.runs(**span)] == ["SUCCESS"], "run that succeeds", RUN)
    browser.open("/runs?view=backfills", "3 partitions", "silver / visits", "Success")
    browser.picture("backfill")


def test_a_sensor_that_is_switched_on_starts_the_hour_that_was_flagged(browser: Browser, served: Served) -> None:
    browser.open("/automation", "hour_is_ready")
    browser.toggle("hour_is_ready")
    flag = served.home / f"landing/visits/date={served.second}/hour=00/_SUCCESS"
    flag.touch()
    hour = {"dagster__sensor_name": "hour_is_ready", "dagster__partition": f"{served.second}T00"}
    browser.until(lambda: [status for status, _ in served.runs(**hour)] == ["SUCCESS"], "run that succeeds", RUN)
    browser.open("/locations/definitions/sensors/hour_is_ready", "hour_is_ready", "1 run requested")
    browser.picture("sensor")
    # Neither the hours without a flag nor those that the command line has run.
    asked = {tags["dagster/partition"] for _, tags in served.runs(dagster__sensor_name="hour_is_ready")}
    assert asked == {f"{served.second}T00"}


def test_the_ledger_adds_up_after_all_of_it(served: Served) -> None:
    served.run("ledger")


def test_an_interrupt_ends_the_ui_and_all_it_started(served: Served) -> None:
    import psutil

    assert served.process is not None
    family = psutil.Process(served.process.pid).children(recursive=True)
    assert family
    assert served.stop() == 0
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive
