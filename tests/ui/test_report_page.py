"""The report in a real Chromium: every width, light and dark, and nothing on the console."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import published
from assets.report import report
from page_view_rows import START, View, random_views, write

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = pytest.mark.ui
ALERT = "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
SMALLEST = 360


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of forty days, one of whose pages has a hostile name."""
    home = tmp_path_factory.mktemp("reported")
    lake = published.deployment(home)
    write(lake, [View(time=START, visit="v", visitor="u", page=ALERT, host=ALERT), *random_views(40 * 24, seed=2)])
    found = report.compute(lake.lake, lake.landing_zone, lake.checkpoints_path, now=datetime.now(timezone.utc))
    report.write(found, home / report.FILE)
    return home / report.FILE


@pytest.fixture(scope="module")
def driver(chromium: str, page: Path) -> Iterator[Chrome]:
    """A browser that shows the report."""
    from selenium import webdriver

    from ui.conftest import FLAGS

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in FLAGS:
        options.add_argument(flag)
    started = webdriver.Chrome(options=options)
    try:
        started.get(page.as_uri())
        yield started
    finally:
        started.quit()


def evaluated(driver: Chrome, script: str) -> Any:
    return driver.execute_script(f"return {script}")


def clicked(driver: Chrome, selector: str) -> None:
    evaluated(driver, f"document.querySelector({selector!r}).click()")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [SMALLEST, 800, 1400])
def test_the_page_fits_every_width(driver: Chrome, page: Path, width: int, theme: str) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == SMALLEST}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    driver.get(page.as_uri())
    assert evaluated(driver, "document.documentElement.scrollWidth") <= width
    assert evaluated(driver, "document.querySelectorAll('.period:not([hidden]) canvas').length") == 1
    background = evaluated(driver, "getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in background[4:-1].split(",")) < 200) == (theme == "dark")
    assert driver.get_log("browser") == []


def test_a_hostile_page_name_does_nothing(driver: Chrome, page: Path) -> None:
    driver.get(page.as_uri())
    clicked(driver, "[data-period=all]")
    assert ALERT in evaluated(driver, "document.querySelector('.period:not([hidden])').textContent")
    assert driver.title == "The blog and its data"
    assert driver.get_log("browser") == []


def test_periods_lines_and_tables_can_be_chosen(driver: Chrome, page: Path) -> None:
    driver.get(page.as_uri())
    shown = ".period:not([hidden])"
    assert evaluated(driver, f"document.querySelector({shown!r}).dataset.of") == "7"
    clicked(driver, "[data-period='28']")
    assert evaluated(driver, f"document.querySelector({shown!r}).dataset.of") == "28"
    clicked(driver, f"{shown} [data-line=visitors]")
    assert evaluated(driver, f"document.querySelector('{shown} [data-title]').textContent") == "Visitors"
    clicked(driver, f"{shown} [data-chart=hours]")
    clicked(driver, f"{shown} [data-numbers] summary")
    script = f"document.querySelectorAll('{shown} [data-numbers] tbody tr').length"
    assert driver.execute_async_script(f"setTimeout(() => arguments[0]({script}), 200)") == 28 * 24
    clicked(driver, f"{shown} .ranking th:nth-child(2)")
    clicked(driver, f"{shown} .ranking th:nth-child(2)")
    cells = f"Array.from(document.querySelectorAll('{shown} .ranking')[0].tBodies[0].rows, (row) => row.cells[1])"
    views = evaluated(driver, f"{cells}.map((cell) => Number(cell.textContent.replaceAll(',', '')))")
    assert len(views) == 25
    assert views == sorted(views)
    assert driver.get_log("browser") == []


def test_the_theme_stays_chosen(driver: Chrome, page: Path) -> None:
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    driver.get(page.as_uri())
    clicked(driver, "#theme")
    chosen = evaluated(driver, "document.documentElement.dataset.theme")
    driver.get(page.as_uri())
    assert evaluated(driver, "document.documentElement.dataset.theme") == chosen == "dark"
