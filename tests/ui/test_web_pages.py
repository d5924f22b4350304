"""What a person does and sees in the web UI, in a real browser, from the first day to the last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil
import pytest

from ui.served import Served

if TYPE_CHECKING:
    from ui.browser import Browser

pytestmark = [pytest.mark.ui, pytest.mark.slow, pytest.mark.timeout(900)]
RUN = 300.0
SENSOR = "/locations/definitions/sensors/hour_is_ready"


def test_the_lineage_leads_from_what_lands_to_the_enriched_visits(browser: Browser) -> None:
    browser.open("/automation", "hour_is_ready")
    browser.click("Hide navigation")
    upstream = "/assets/silver/visits_enriched?view=lineage&lineageScope=upstream&lineageDepth="
    # Three steps are few enough to be drawn with what Dagster knows of each dataset; later pages keep the scale.
    browser.open(f"{upstream}3", "2 / 2 Passed", "Delta Lake")
    browser.picture("lineage")
    browser.open(f"{upstream}9", "Materialize all (8)…")
    for dataset in ("access_logs", "hourly_access_logs", "visits", "users", "devices", "visits_enriched"):
        browser.sees(dataset)


def test_a_dataset_shows_its_columns_owner_and_patterns(browser: Browser) -> None:
    browser.open("/assets/silver/visits", "Row count", "event_hour", "One browsing session of one browser")
    browser.sees("pattern/windowed-deduplicator")
    browser.sees("analytics")


def test_one_partition_is_materialized_from_its_page(browser: Browser, served: Served) -> None:
    hour = f"{served.days[0]}T05"
    browser.open("/assets/bronze/visits", "Latest materialization")
    browser.click("Materialize…")
    choose(browser, hour)
    browser.click("Launch 1 run")
    browser.until(
        lambda: [status for status, _ in served.runs(dagster__partition=hour)] == ["SUCCESS"], "run that succeeds", RUN
    )
    browser.open("/runs", f"partition: {hour}", "Success")


def test_a_backfill_of_a_range_is_one_run_of_all_its_datasets(browser: Browser, served: Served) -> None:
    first, last = f"{served.days[0]}T06", f"{served.days[0]}T17"
    browser.open(
        "/assets/silver/visit_conflicts?view=lineage&lineageScope=upstream&lineageDepth=2", "Materialize all (3)…"
    )
    browser.click("Materialize all (3)…")
    choose(browser, f"[{first}...{last}]")
    browser.click("Launch backfill")
    span = {"dagster__asset_partition_range_start": first, "dagster__asset_partition_range_end": last}
    browser.until(lambda: [status for status, _ in served.runs(**span)] == ["SUCCESS"], "run that succeeds", RUN)
    browser.open("/runs?view=backfills", "12 partitions", "Success")
    browser.click("View")
    browser.until(lambda: browser.text().count("100% completed") == 3, "three datasets that are complete")
    browser.picture("backfill")


def test_a_sensor_that_is_switched_on_starts_the_hour_that_was_flagged(browser: Browser, served: Served) -> None:
    browser.open(SENSOR, "Starts an hour when its producer has flagged it")
    browser.switch("Running", on=True)
    flagged = served.flags(served.days[1])[0]
    flagged.touch()
    hour = {"dagster__sensor_name": "hour_is_ready", "dagster__partition": f"{served.days[1]}T00"}
    browser.until(lambda: [status for status, _ in served.runs(**hour)] == ["SUCCESS"], "run that succeeds", RUN)
    browser.open(SENSOR, "1 run requested")
    browser.click("Runs")
    browser.sees("Success")
    browser.picture("sensor", moves=True)
    browser.switch("Running", on=False)
    # Neither the hours without a flag nor those that the command line has run.
    asked = {tags["dagster/partition"] for _, tags in served.runs(dagster__sensor_name="hour_is_ready")}
    assert asked == {f"{served.days[1]}T00"}


def test_the_command_line_runs_the_rest_while_the_ui_is_up(browser: Browser, served: Served) -> None:
    for flag in served.flags(*served.days[1:-1]):
        flag.touch()
    served.run("run")
    served.run("ledger")


def test_a_replay_is_planned_by_its_job_and_carried_out_by_its_sensor(browser: Browser, served: Served) -> None:
    hour = f"{served.days[0]}T05"
    planned = served.launch("replay", plan_replay={"dataset": "silver.visits", "partitions": hour})
    browser.open("/locations/definitions/sensors/replay_runs", "Carries out the replays")
    browser.switch("Running", on=True)
    done = ["SUCCESS", "SUCCESS", "SUCCESS"]
    tag = {"blogdata__replay": f"replay-{planned}"}
    browser.until(lambda: [status for status, _ in served.runs(**tag)] == done, "three runs that succeed", RUN)
    browser.open("/locations/definitions/sensors/replay_runs", "1 run requested")
    browser.switch("Running", on=False)
    week, day, first = (tags["dagster/asset_partition_range_start"] for _, tags in served.runs(**tag))
    assert (first, day) == (hour, served.days[0])
    assert week <= day
    served.run("ledger")
    browser.open(f"/runs/{planned}", "plan_replay", "Success")


def test_figures_of_the_partitions_are_plotted(browser: Browser) -> None:
    browser.open("/assets/bronze/visits", "Latest materialization")
    browser.click("Plots")
    browser.sees("measure/dead")
    browser.bring_to_top("Plots")
    browser.picture("plots")


def test_a_dataset_shows_that_its_contract_and_its_ledger_hold(browser: Browser) -> None:
    browser.open("/assets/silver/visits?view=checks", "contract", "ledger", "Passed")
    browser.open("/assets/silver/visits?view=checks&checkDetail=ledger", "left_out", "Rows in = rows out")
    browser.picture("checks")


def test_a_publication_shows_which_columns_its_columns_were_computed_from(browser: Browser) -> None:
    browser.open("/assets/gold/page_stats?view=events", "Metadata", "computed_from")
    browser.sees("silver.visits_enriched.visit_id")
    browser.sees("no column: a count of rows")
    browser.picture("asset")


def test_a_port_that_is_taken_is_one_clear_message(served: Served) -> None:
    port = served.url.rsplit(":", 1)[1]
    refused = served.call("ui", "--port", port)
    assert refused.returncode != 0
    assert f"port {port} cannot be used" in refused.stderr
    assert "choose another port" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_an_interrupt_ends_the_ui_and_all_it_started(served: Served) -> None:
    assert served.process is not None
    family = psutil.Process(served.process.pid).children(recursive=True)
    assert family
    assert served.stop() == 0
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive


def choose(browser: Browser, partitions: str) -> None:
    """Write partitions into the dialog that starts runs."""
    browser.sees("Partition selection")
    browser.click("Show all partitions")
    browser.write("ex: ", partitions)
