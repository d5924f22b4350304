"""A headless Chromium; its tests are skipped where it, its driver or selenium is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
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
def chromium() -> Iterator[Callable[[], Chrome]]:
    """Return what opens a browser without cookies, which is closed at the end."""
    pytest.importorskip("selenium", reason="needs selenium: make setup-ui")
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    binary, driver = next(filter(None, map(shutil.which, CHROMIUM)), None), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs Chromium and its driver (Debian: apt-get install chromium chromium-driver)")
    options = ChromeOptions()
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in FLAGS:
        options.add_argument(flag)
    with ExitStack() as stack:

        def opened() -> Chrome:
            chrome = Chrome(options=options, service=Service(driver))
            stack.callback(chrome.quit)
            return chrome

        yield opened
