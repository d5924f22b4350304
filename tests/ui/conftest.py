"""The UI of a deployment with five simulated days, and a headless Chromium that looks at it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from ui.served import Served, environment

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
DAYS = 5
FLAGS = (
    "--headless=new",
    # Inside a container the user is root, and Chromium has no sandbox for it.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    # The page itself is 900 high.
    "--window-size=1400,1043",
)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser; the tests are skipped where it, its driver or selenium is missing."""
    pytest.importorskip("selenium", reason="needs selenium: make setup-ui")
    found = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if found is None or shutil.which("chromedriver") is None:
        pytest.skip("needs Chromium and its driver (Debian: apt-get install chromium chromium-driver)")
    return found


@pytest.fixture(scope="session")
def served(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A deployment whose first day is published and whose other days have landed without their flags."""
    home = tmp_path_factory.mktemp("served")
    # Pages show the latest partitions, so the simulated days are the last ones.
    today = datetime.now(timezone.utc)
    days = tuple((today - timedelta(days=ago)).strftime("%Y-%m-%d") for ago in range(DAYS, 0, -1))
    deployment = Served(home=home, environ=environment(home), days=days)
    try:
        volume = ("--days", str(DAYS), "--visits-per-day", "4800", "--seed", "7", "--no-ads")
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


@pytest.fixture(scope="session")
def browser(served: Served, chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A browser; its pictures go to the folder in UI_PICTURES, or to the tests' files."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    from ui.browser import Browser

    options = ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    pictures = Path(os.environ.get("UI_PICTURES") or tmp_path_factory.mktemp("pictures"))
    pictures.mkdir(parents=True, exist_ok=True)
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_page_load_timeout(120)
    try:
        driver.get(served.link)
        yield Browser(driver, served.url, pictures)
    finally:
        driver.quit()
