"""A person's work in the web UI, in a real browser, from the first day to the last."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ui.served import Served, environment

if TYPE_CHECKING:
    from ui.browser import Browser

pytestmark = [pytest.mark.ui, pytest.mark.slow, pytest.mark.timeout(900)]
RUN = 300.0
DAYS = 5
STALE = "whatever_is_stale"
SENSOR = f"/locations/definitions/sensors/{STALE}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A deployment whose first day is published and whose other days have landed without their flags."""
    pytest.importorskip("selenium", reason="needs selenium: make setup-ui")
    home = tmp_path_factory.mktemp("served")
    # Pages show the latest partitions, so the simulated days are the last ones.
    today = datetime.now(timezone.utc)
    days = tuple((today - timedelta(days=ago)).strftime("%Y-%m-%d") for ago in range(DAYS, 0, -1))
    deployment = Served(home=home, environ=environment(home), days=days)
    volume = ("--days", str(DAYS), "--visits-per-day", "4800", "--seed", "7", "--no-ads")
    try:
        deployment.run("land", "simulate", *volume, "--begin", days[0])
        for flag in deployment.flags(*days[1:]):
            flag.unlink()
        deployment.run("run")
        deployment.start()
        yield deployment
    finally:
        if deployment.process is not None:
            deployment.stop()
        deployment.run("down")


@pytest.fixture(scope="module")
def browser(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser; its pictures go to the folder in UI_PICTURES, or to the tests' files."""
    from ui.browser import Browser, chromium

    pictures = Path(os.environ.get("UI_PICTURES") or tmp_path_factory.mktemp("pictures"))
    pictures.mkdir(parents=True, exist_ok=True)
    with chromium() as driver:
        driver.get(served.link)
        yield Browser(driver, served.url, pictures)


def test_the_other_teams_location_is_beside_ours(browser: Browser, served: Served) -> None:
    browser.open("/locations", "2 code locations", "definitions", "analytics")
    browser.open("/assets/gold/daily_report?view=lineage", "visits_enriched", "dead_letters", "views_forecast")
    run = served.launch("forecast", location="analytics")
    browser.until(lambda: (served.home / "analytics" / "views_forecast" / "_delta_log").is_dir(), "a forecast", RUN)
    browser.open(f"/runs/{run}", "analytics", "Success")
    # It runs in the other location's process, and reads the platform's published tables.
    browser.open("/assets/analytics/views_forecast", "gold.daily_report version", "incomplete_days")


def test_a_running_sensor_starts_the_flagged_hour(browser: Browser, served: Served) -> None:
    browser.open(SENSOR, "Computes what has landed completely")
    browser.switch("Running", on=True)
    served.flags(served.days[1])[0].touch()
    browser.until(lambda: succeeded(served, dagster__sensor_name=STALE) >= 1, "run that succeeds", RUN)
    browser.open(SENSOR, "requested")
    browser.click("Runs")
    browser.sees("Success")
    browser.picture("sensor", moves=True)
    # It lists its hours, and requests no others.
    texts = [tags["blogdata/about"] for _, tags in served.runs(dagster__sensor_name=STALE)]
    (about,) = (text for text in texts if f"bronze.visits {served.days[1]}T00" in text)
    assert "more" not in about


def test_a_bad_hour_is_red_until_mended(browser: Browser, served: Served) -> None:
    flag = served.flags(served.days[1])[1]
    kept = {file: file.read_bytes() for file in flag.parent.iterdir()}
    for file in kept:
        file.write_bytes(b"{ this is no event\n" * 200)
    flag.touch()
    bad = f"{served.days[1]}T01"
    browser.until(lambda: "FAILURE" in statuses(served), "run that fails", RUN)
    # A later hour changes nothing: the failed hour stays red, and is named.
    before = succeeded(served, dagster__sensor_name=STALE)
    served.flags(served.days[1])[2].touch()
    browser.until(lambda: succeeded(served, dagster__sensor_name=STALE) > before, "later hour that succeeds", RUN)
    browser.open("/assets/silver/visits?view=checks&checkDetail=waiting", "waiting", f"waiting for a person: {bad}")
    browser.picture("bad-hour")
    browser.open("/assets/silver/visits?view=lineage", "/ 9 Passed")
    browser.picture("lineage-with-a-bad-hour")
    before = succeeded(served, dagster__sensor_name=STALE)
    for file, content in kept.items():
        # As many lines as published: with fewer lines in the files the loss would have to be accepted.
        file.write_bytes(content * 3)
    flag.touch()
    browser.until(lambda: succeeded(served, dagster__sensor_name=STALE) > before, "run that mends it", RUN)
    browser.open("/assets/silver/visits?view=checks&checkDetail=waiting", "waiting", "Passed")
    assert f"waiting for a person: {bad}" not in served.run("plan")
    browser.picture("mended-hour")
    browser.open(SENSOR, "Computes what has landed completely")
    browser.switch("Running", on=False)


def test_the_data_docs_of_healthy_data_are_green(browser: Browser, served: Served) -> None:
    served.launch("data_docs")
    docs = served.home / "data_docs"
    browser.until(lambda: (docs / "index.html").exists(), "Data Docs", RUN)
    browser.open("/assets/ops/data_docs?view=checks&checkDetail=bronze_visits", "promises kept")
    assert "Failed" not in browser.text()
    browser.picture("data-docs-checks")
    browser.open((docs / "index.html").as_uri(), "silver.visits")
    browser.picture("data-docs")


def test_a_taken_port_is_one_clear_message(served: Served) -> None:
    port = served.url.rsplit(":", 1)[1]
    refused = served.call("ui", "--port", port)
    assert refused.returncode != 0
    assert f"port {port} cannot be used" in refused.stderr


def test_automatic_mode_runs_sensors_from_the_start(browser: Browser, served: Served) -> None:
    assert served.stop() == 0
    served.start("--automatic")
    browser.url = served.url
    # A person switched it off before, and that stays so until it is switched on.
    browser.open(SENSOR, "Computes what has landed completely")
    browser.switch("Running", on=True)
    before = len(served.runs(dagster__sensor_name=STALE))
    for flag in served.flags(served.days[-1]):
        flag.touch()

    def is_served() -> bool:
        return f'"{served.days[-1]}"' in served.run("sql", "SELECT DISTINCT event_date FROM gold.page_stats", "--json")

    browser.until(is_served, "day in gold", RUN)
    assert len(served.runs(dagster__sensor_name=STALE)) - before <= 2
    browser.open("/automation", STALE, "nightly")
    browser.picture("automation", moves=True)
    browser.open("/runs", "refresh")
    browser.picture("runs", moves=True)
    served.run("ledger")
    assert served.stop() == 0


def statuses(served: Served) -> list[str]:
    return [status for status, _ in served.runs(dagster__sensor_name=STALE)]


def succeeded(served: Served, **having: str) -> int:
    return sum(status == "SUCCESS" for status, _ in served.runs(**having))
