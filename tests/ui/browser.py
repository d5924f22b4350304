"""A person at a browser: opens pages, reads, clicks, types, and takes pictures."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

PATIENCE = 90.0


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

    def sees(self, text: str, seconds: float = PATIENCE) -> None:
        """Wait until a text is there."""
        self.until(lambda: text in self.text(), f"'{text}' on {self._driver.current_url}", seconds)

    def text(self) -> str:
        """All that can be read."""
        return self._driver.find_element(By.TAG_NAME, "body").text

    def click(self, text: str) -> None:
        """Click the button, link or label that says exactly this."""
        words = f"[normalize-space(.)={text!r}]"
        path = f"//button{words} | //a{words} | //label{words}"

        def clicked() -> bool:
            found = [each for each in self._driver.find_elements(By.XPATH, path) if each.is_displayed()]
            if not found or not found[-1].is_enabled():
                return False
            found[-1].click()
            return True

        self.until(clicked, f"a button '{text}'")

    def toggle(self, label: str) -> None:
        """Flip the switch in the row that names something."""
        row = f"//*[normalize-space(text())={label!r}]/ancestor::*[.//label[.//input[@type='checkbox']]]"

        def flipped() -> bool:
            rows = self._driver.find_elements(By.XPATH, row)
            if not rows:
                return False
            # The nearest row comes last; its switch comes after the box that selects it.
            rows[-1].find_elements(By.XPATH, ".//label[.//input[@type='checkbox']]")[-1].click()
            return True

        self.until(flipped, f"a switch of '{label}'")

    def write(self, hint: str, text: str) -> None:
        """Replace what is in the field whose placeholder begins like this."""

        def field() -> WebElement:
            return self._driver.find_elements(By.XPATH, f"//input[starts-with(@placeholder, {hint!r})]")[-1]

        def written() -> bool:
            found = field()
            found.click()
            found.send_keys(Keys.CONTROL, "a")
            found.send_keys(Keys.BACKSPACE, text, Keys.ENTER)
            found.send_keys(Keys.TAB)
            return field().get_attribute("value") == text

        self.until(written, f"a field '{hint}'")

    def picture(self, name: str) -> None:
        """Keep what can be seen."""
        time.sleep(2)  # drawings move for a moment
        self._driver.save_screenshot(str(self._pictures / f"{name}.png"))

    def until(self, holds: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
        """Wait for something; what is drawn anew in between is looked at again."""
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
                self.picture("failed")
                raise AssertionError(f"no {what} within {seconds:.0f} s; the page says: {self.text()[:600]}")
            time.sleep(0.5)
