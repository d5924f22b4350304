"""The report in a real Chromium: every width, light and dark, and no console message."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import published
from assets.report import FILE, blog_report
from blogdata.report import texts
from page_view_rows import START, View, counted, random_requests, random_views, write, write_days

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
    home = tmp_path_factory.mktemp("reported")
    lake = published.deployment(home)
    write(lake, views)
    days = [f"{START + timedelta(days=day):%Y-%m-%d}" for day in range(40)]
    hostile = {"path": ALERT, "referral_host": ALERT, "host": ALERT, "status": "404", "requests": 9_999, "bytes": 1}
    requests = random_requests(days, seed=6)
    write_days(lake.lake, "gold.requests_daily", [*requests, {**requests[-1], **hostile}])
    reasons = ["invalid_time:context.user.connected_since", "not_json"]
    rejected = [[LAST, reason, 1] for reason in reasons]
    published.bronze(lake.lake, {LAST: {LAST: 3}}, dead={LAST: len(reasons)}, reasons=rejected, line_format="combined")
    published.publish(
        lake.lake,
        "bronze.dead_letters",
        "arrival_hour",
        {LAST: len(reasons)},
        content=pa.table(
            {
                "arrival_hour": [LAST] * len(reasons),
                "source_file": [f"visits/date={LAST[:10]}/hour={LAST[11:]}/visits-00000.json"] * len(reasons),
                "source_offset": range(len(reasons)),
                "reasons": [[reason] for reason in reasons],
                "raw": [b'{"visit_id":"7", "page":"/' + b"a" * 300] * len(reasons),
            }
        ),
    )
    found = blog_report.compute(lake.lake, lake.landing_zone, lake.checkpoints_path, now=datetime.now(timezone.utc))
    blog_report.write(found, home / FILE)
    return home / FILE


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


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 820, 1440])
def test_an_accessibility_checker_finds_nothing(driver: Chrome, page: Path, width: int, theme: str) -> None:
    """Axe's rules, including best practices: a preset period, all expandable parts, and a range of days."""
    axe = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == 390}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    driver.get(page.as_uri())
    driver.execute_script(axe)
    opened = "for (const one of document.querySelectorAll('details')) one.open = true;"
    ranged = "document.querySelector('[data-day=first]').dispatchEvent(new Event('change'));"
    for prepared in ("", opened, ranged):
        driver.execute_script(prepared)
        found = driver.execute_async_script("axe.run().then(arguments[0])")
        faults = {(fault["id"], node["html"][:120]) for fault in found["violations"] for node in fault["nodes"]}
        assert faults == set()
        assert {"color-contrast", "image-alt", "button-name"} & {rule["id"] for rule in found["passes"]}


def test_a_phone_shows_the_hours_of_the_week_and_the_reasons_whole(driver: Chrome, page: Path) -> None:
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(page.as_uri())
    for table in (".period:not([hidden]) .grid", ".reasons"):
        left, right, smallest = evaluated(
            driver,
            f"(() => {{ const table = document.querySelector({table!r}); const box = table.getBoundingClientRect();"
            "const size = (one) => parseFloat(getComputedStyle(one).fontSize);"
            "return [box.left, box.right, Math.min(...Array.from(table.querySelectorAll('th'), size))]; })()",
        )
        assert left >= 0
        assert right <= 390
        assert smallest >= 11
    clicked(driver, ".period:not([hidden]) .grid tbody td:nth-child(9)")
    told = evaluated(driver, "document.querySelector('.period:not([hidden]) output').textContent")
    assert told.startswith("Mon 07:00, ")


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
    clicked(driver, f"{shown} .ranking th:nth-child(2) button")
    clicked(driver, f"{shown} .ranking th:nth-child(2) button")
    cells = f"Array.from(document.querySelectorAll('{shown} .ranking')[0].tBodies[0].rows, (row) => row.cells[1])"
    views = evaluated(driver, f"{cells}.map((cell) => Number(cell.textContent.replaceAll(',', '')))")
    assert len(views) == 25
    assert views == sorted(views)
    assert driver.get_log("browser") == []


@pytest.mark.parametrize(
    ("first", "last", "compared"),
    [
        ("2026-01-20", "2026-01-20", ("2026-01-13", "2026-01-13")),
        ("2026-01-21", "2026-01-30", ("2026-01-07", "2026-01-16")),
        ("2026-01-05", "2026-02-13", None),
    ],
)
def test_any_range_of_days_can_be_chosen(
    driver: Chrome, page: Path, views: list[View], first: str, last: str, compared: tuple[str, str] | None
) -> None:
    driver.get(page.as_uri())
    for name, day in (("last", last), ("first", first)):
        field = f"document.querySelector('[data-day={name}]')"
        driver.execute_script(f"{field}.value = '{day}'; {field}.dispatchEvent(new Event('change'))")
    expected = counted(views, f"{first}T00", f"{last}T23")
    part = "document.querySelector('.period:not([hidden])')"
    assert evaluated(driver, f"{part}.dataset.of") == "range"
    for name, value in evaluated(
        driver,
        f"Array.from({part}.querySelectorAll('[data-figure]'), (one) => "
        "[one.dataset.figure, one.querySelector('.value').textContent])",
    ):
        written = texts.figure(expected[name], {"bounce": "share", "views_per_visit": "ratio"}.get(name, "count"))
        assert (name, value) == (name, written)
    deltas = evaluated(driver, f"{part}.querySelector('[data-figure=views] .delta').textContent")
    if compared is None:
        assert deltas == ""
    else:
        earlier = counted(views, f"{compared[0]}T00", f"{compared[1]}T23")
        assert deltas == f"{texts.change(expected['views'], earlier['views'])} {earlier['views']}"
    rows = evaluated(
        driver,
        f"Array.from({part}.querySelector('[data-ranking=page]').tBodies[0].rows, (row) => "
        "Array.from(row.cells, (cell) => cell.textContent))",
    )
    pages = {name: numbers[0] for name, numbers in expected["page"].items()}
    assert len(rows) == min(len(pages), 15)
    assert [int(row[1]) for row in rows] == sorted(pages.values(), reverse=True)[: len(rows)]
    for name, count, share, _ in rows:
        assert int(count) == pages[name]
        # Halves may be rounded up or down.
        assert float(share.rstrip("%")) == pytest.approx(100 * pages[name] / expected["views"], abs=0.051)
    if compared is None:
        clicked(driver, ".period:not([hidden]) [data-chart=months]")
        clicked(driver, ".period:not([hidden]) [data-numbers] summary")
        cells = f"Array.from({part}.querySelectorAll('[data-numbers] tr'), (row) => row.textContent)"
        january, february = (
            counted(views, *span) for span in ((f"{first}T00", "2026-01-31T23"), ("2026-02-01T00", LAST))
        )
        columns = ("views", "visits", "visitors", "new")
        assert driver.execute_async_script(f"setTimeout(() => arguments[0]({cells}), 200)") == [
            "MonthPage viewsVisitsVisitorsNew visitors",
            "January 2026" + "".join(f"{january[name]:,}" for name in columns),
            "February 2026" + "".join(f"{february[name]:,}" for name in columns),
        ]
    # The next choice also appears in the date fields.
    clicked(driver, "[data-period='7']")
    assert evaluated(driver, "document.querySelector('[data-day=first]').value") == "2026-02-07"
    assert driver.get_log("browser") == []


def test_the_theme_stays_chosen(driver: Chrome, page: Path) -> None:
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    driver.get(page.as_uri())
    clicked(driver, "#theme")
    chosen = evaluated(driver, "document.documentElement.dataset.theme")
    driver.get(page.as_uri())
    assert evaluated(driver, "document.documentElement.dataset.theme") == chosen == "dark"
