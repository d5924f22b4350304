"""A browser driven like a person: opens pages, reads, clicks, and takes pictures."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

PATIENCE = 90.0
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
# Inside a container the user is root, and Chromium has no sandbox for it. The page itself is 900 high.
FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run"
FLAGS += " --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars"
FLAGS += " --window-size=1400,1043"
_COUNTDOWN = re.compile(r"\b\d:\d\d\b")
UNFINISHED = "[class*=Skeleton_], [class*=Spinner_], [aria-label=Loading]"
FAULTS = ("GraphQL error", "Unexpected error", "Error loading", "An error occurred", "Could not load")


@contextmanager
def chromium() -> Iterator[Chrome]:
    """Open a browser without cookies; the tests are skipped where it or its driver is missing."""
    binary, driver = next(filter(None, map(shutil.which, CHROMIUM)), None), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs Chromium and its driver (Debian: apt-get install chromium chromium-driver)")
    options = ChromeOptions()
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in FLAGS.split():
        options.add_argument(flag)
    with Chrome(options=options, service=Service(driver)) as opened:
        opened.set_page_load_timeout(120)
        yield opened


class Browser:
    def __init__(self, driver: Chrome, url: str, pictures: Path) -> None:
        self.driver, self.url, self._pictures = driver, url, pictures

    def open(self, path: str, *texts: str) -> None:
        """Open a page, or a whole address, and wait until it shows all the texts."""
        self.driver.get(path if ":" in path.split("/")[0] else self.url + path)
        for text in texts:
            self.sees(text)

    def sees(self, text: str) -> None:
        self.until(lambda: text in self.text(), f"'{text}' on {self.driver.current_url}")

    def text(self) -> str:
        return str(self.driver.find_element(By.TAG_NAME, "body").text)

    def click(self, text: str) -> None:
        """Click the button, link or label with exactly this text."""
        words = f"[normalize-space(.)={text!r}]"
        path = f"//button{words} | //a{words} | //label{words}"

        def clicked() -> bool:
            buttons = [button for button in self.driver.find_elements(By.XPATH, path) if button.is_displayed()]
            if not buttons or not buttons[-1].is_enabled():
                return False
            buttons[-1].click()
            return True

        self.until(clicked, f"a button '{text}'")

    def switch(self, row: str, *, on: bool) -> None:
        """Flip the switch in the table's row of this name, and wait for the wanted state."""
        path = f"//tr[td[normalize-space(.)={row!r}]]//label[.//input[@type='checkbox']]"

        def switch() -> WebElement:
            return self.driver.find_elements(By.XPATH, path)[0]

        def is_set() -> bool:
            return bool(switch().find_element(By.TAG_NAME, "input").is_selected() == on)

        def clicked() -> bool:
            if not is_set():
                switch().click()
            return True

        self.until(clicked, f"a switch of '{row}'")
        self.until(is_set, f"switch of '{row}' that is {'on' if on else 'off'}")

    def picture(self, name: str, *, moves: bool = False) -> None:
        """Take a picture once everything is loaded and stands still; on a page with a clock its other words do."""
        looks: list[bytes | str] = []

        def stands_still() -> bool:
            loading = [part for part in self.driver.find_elements(By.CSS_SELECTOR, UNFINISHED) if part.is_displayed()]
            words = _COUNTDOWN.sub("", self.text())
            looks.append("" if loading else words if moves else self.driver.get_screenshot_as_png())
            return len(looks) > 1 and bool(looks[-1]) and looks[-1] == looks[-2]

        self.until(stands_still, f"page that stands still for the picture {name}")
        self.driver.save_screenshot(str(self._pictures / f"{name}.png"))
        assert not any(fault in self.text() for fault in FAULTS), self.text()

    def until(self, holds: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
        """Wait for a condition; elements that are redrawn meanwhile are looked up again."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if holds():
                    return
            except (StaleElementReferenceException, IndexError):
                pass
            except WebDriverException as error:
                if "intercepted" not in str(error) and "not interactable" not in str(error):
                    raise
            if time.monotonic() > deadline:
                self.driver.save_screenshot(str(self._pictures / "failed.png"))
                raise AssertionError(f"no {what} within {seconds:.0f} s; the page says: {self.text()[:600]}")
            time.sleep(0.4)
