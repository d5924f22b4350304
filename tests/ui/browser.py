"""A browser driven like a person: opens pages, reads, clicks, and takes pictures."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

PATIENCE = 90.0
_COUNTDOWN = re.compile(r"\b\d:\d\d\b")
UNFINISHED = "[class*=Skeleton_], [class*=Spinner_], [aria-label=Loading]"
FAULTS = ("GraphQL error", "Unexpected error", "Error loading", "An error occurred", "Could not load")


class Browser:
    """One window of 1400 by 900.

    Args:
        driver: The browser.
        url: Where the pages are.
        pictures: Folder of the pictures it takes.
    """

    def __init__(self, driver: Chrome, url: str, pictures: Path) -> None:
        self._driver, self._url, self._pictures = driver, url, pictures

    def open(self, path: str, *texts: str) -> None:
        """Open a page and wait until it shows all the texts."""
        self._driver.get(self._url + path)
        for text in texts:
            self.sees(text)

    def open_file(self, file: Path, *texts: str) -> None:
        """Open a file and wait until it shows all the texts."""
        self._driver.get(file.as_uri())
        for text in texts:
            self.sees(text)

    def forget(self, key: str) -> None:
        """Remove the value that the pages store under this key."""
        self._driver.execute_script("localStorage.removeItem(arguments[0])", key)

    def moves_to(self, url: str) -> None:
        """Use another address for the pages from now on."""
        self._url = url

    def sees(self, text: str, seconds: float = PATIENCE) -> None:
        """Wait until a text is visible."""
        self.until(lambda: text in self.text(), f"'{text}' on {self._driver.current_url}", seconds)

    def address(self) -> str:
        """The current address."""
        return str(self._driver.current_url)

    def title(self) -> str:
        """The title of the page."""
        return str(self._driver.title)

    def text(self) -> str:
        """All visible text."""
        return str(self._driver.find_element(By.TAG_NAME, "body").text)

    def click(self, text: str) -> None:
        """Click the button, link or label with exactly this text."""
        words = f"[normalize-space(.)={text!r}]"
        path = f"//button{words} | //a{words} | //label{words}"

        def clicked() -> bool:
            found = [each for each in self._driver.find_elements(By.XPATH, path) if each.is_displayed()]
            if not found or not found[-1].is_enabled():
                return False
            found[-1].click()
            return True

        self.until(clicked, f"a button '{text}'")

    def switch(self, row: str, *, on: bool) -> None:
        """Flip the switch in the table's row of this name, and wait for the wanted state."""
        path = f"//tr[td[normalize-space(.)={row!r}]]//label[.//input[@type='checkbox']]"

        def switch() -> WebElement:
            return self._driver.find_elements(By.XPATH, path)[0]

        def is_set() -> bool:
            return bool(switch().find_element(By.TAG_NAME, "input").is_selected() == on)

        def clicked() -> bool:
            if not is_set():
                switch().click()
            return True

        self.until(clicked, f"a switch of '{row}'")
        self.until(is_set, f"switch of '{row}' that is {'on' if on else 'off'}")

    def picture(self, name: str, *, moves: bool = False) -> None:
        """Take a picture once everything is loaded and stands still.

        Args:
            name: Name of the file.
            moves: The page has a clock: only its other words have to stand still.
        """
        looks: list[bytes | str] = []

        def stands_still() -> bool:
            loading = [each for each in self._driver.find_elements(By.CSS_SELECTOR, UNFINISHED) if each.is_displayed()]
            words = _COUNTDOWN.sub("", self.text())
            looks.append("" if loading else words if moves else self._driver.get_screenshot_as_png())
            return len(looks) > 1 and bool(looks[-1]) and looks[-1] == looks[-2]

        self.until(stands_still, f"page that stands still for the picture {name}")
        self._driver.save_screenshot(str(self._pictures / f"{name}.png"))
        said = self.text()
        assert not any(fault in said for fault in FAULTS), said

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
                self._driver.save_screenshot(str(self._pictures / "failed.png"))
                raise AssertionError(f"no {what} within {seconds:.0f} s; the page says: {self.text()[:600]}")
            time.sleep(0.4)
