"""The report in a real Chromium: every width, light and dark, and no console message."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import published
from blogdata.operate import config
from blogdata.watch import report
from blogdata.watch.report_page import FILE, figure
from page_view_rows import START, View, counted, random_views, write

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = pytest.mark.ui
ALERT = "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
SMALLEST = 360
LAST = "2026-02-13T23"
"""The last hour."""


@pytest.fixture(scope="module")
def views() -> list[View]:
    """Page views of forty days."""
    return [View(time=START, visit="v", visitor="u", page=ALERT, host=ALERT), *random_views(40 * 24, seed=2)]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, views: list[View]) -> Path:
    """A report of forty days, one of whose pages has a hostile name."""
    pytest.importorskip("selenium", reason="needs selenium: make setup-ui")
    home = tmp_path_factory.mktemp("reported")
    lake = published.deployment(home)
    write(lake.lake, views)
    published.bronze(lake.lake, {LAST: {LAST: 3}})
    report.write(report.compute(config.load({"BLOGDATA_HOME": str(home)})), home / FILE)
    return home / FILE


@pytest.fixture(scope="module")
def driver(page: Path) -> Iterator[Chrome]:
    from ui.browser import chromium

    with chromium() as opened:
        yield opened


def evaluated(driver: Chrome, script: str) -> Any:
    return driver.execute_script(f"return {script}")


def clicked(driver: Chrome, selector: str) -> None:
    evaluated(driver, f"document.querySelector({selector!r}).click()")


def resize(driver: Chrome, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == SMALLEST}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [SMALLEST, 800, 1400])
def test_the_page_fits_every_width_and_an_accessibility_checker_finds_nothing(
    driver: Chrome, page: Path, width: int, theme: str
) -> None:
    """Axe's rules, including best practices: the period that is shown first, another one, and all expandable parts."""
    resize(driver, width)
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    driver.get(page.as_uri())
    assert evaluated(driver, "document.documentElement.scrollWidth") <= width
    assert evaluated(driver, "document.querySelectorAll('.period:not([hidden]) .plot .slot').length") == 7
    background = evaluated(driver, "getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in background[4:-1].split(",")) < 200) == (theme == "dark")
    assert driver.get_log("browser") == []

    driver.execute_script((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8"))
    opened = "for (const one of document.querySelectorAll('details')) one.open = true;"
    chosen = "document.querySelector('[data-period=all]').click();"
    for prepared in ("", opened, chosen):
        driver.execute_script(prepared)
        found = driver.execute_async_script("axe.run().then(arguments[0])")
        faults = {(fault["id"], node["html"][:120]) for fault in found["violations"] for node in fault["nodes"]}
        assert faults == set()
        assert {"color-contrast", "image-alt", "button-name"} & {rule["id"] for rule in found["passes"]}


def test_a_phone_shows_views_visits_and_visitors_of_each_page(driver: Chrome, page: Path) -> None:
    resize(driver, SMALLEST)
    driver.get(page.as_uri())
    cells = evaluated(
        driver,
        "Array.from(document.querySelector('.period:not([hidden]) .ranking').rows[1].cells, (cell) => {"
        "const box = cell.getBoundingClientRect(); return [box.left, box.right, box.width]; })",
    )
    assert len(cells) == 4
    assert all(left >= 0 and right <= SMALLEST and width > 30 for left, right, width in cells)
    assert cells[0][2] > 100, "the page's name can be read"


def test_a_hostile_page_name_does_nothing(driver: Chrome, page: Path) -> None:
    driver.get(page.as_uri())
    clicked(driver, "[data-period=all]")
    assert ALERT in evaluated(driver, "document.querySelector('.period:not([hidden])').textContent")
    assert driver.title == "The blog and its data"
    assert driver.get_log("browser") == []


def test_another_period_can_be_chosen(driver: Chrome, page: Path, views: list[View]) -> None:
    driver.get(page.as_uri())
    shown = ".period:not([hidden])"
    assert evaluated(driver, f"document.querySelector({shown!r}).dataset.of") == "7"
    clicked(driver, "[data-period='28']")
    assert evaluated(driver, f"document.querySelectorAll({shown!r}).length") == 1
    expected = counted(views, "2026-01-17T00", LAST)
    for name, value in evaluated(
        driver,
        f"Array.from(document.querySelector({shown!r}).querySelectorAll('[data-figure]'), (one) => "
        "[one.dataset.figure, one.querySelector('b').textContent])",
    ):
        unit = {"bounce": "share", "views_per_visit": "ratio", "seconds": "seconds"}.get(name, "count")
        assert (name, value) == (name, figure(expected[name], unit))
    assert evaluated(driver, f"document.querySelectorAll('{shown} details tbody tr').length") == 28
    names = f"Array.from(document.querySelectorAll('{shown} .country tbody td:first-child'), (one) => one.innerText)"
    assert set(evaluated(driver, names)) == {"Germany", "Japan", "unknown"}
    visible = (
        f"Array.from(document.querySelectorAll('{shown} .page tbody tr')).filter((row) => row.offsetHeight).length"
    )
    assert evaluated(driver, visible) == 10
    clicked(driver, f"{shown} [data-more]")
    assert evaluated(driver, visible) == 25
    assert driver.get_log("browser") == []
