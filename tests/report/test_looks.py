"""Visual rules of the page that need no browser: contrast, table headers, and styles of controls."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

import published
from assets.report import blog_report
from page_view_rows import START, View, random_views, write

CSS = (files("blogdata.report") / "static" / "page.css").read_text(encoding="utf-8")
LEAST = 4.5
"""Contrast of texts, by the Web Content Accessibility Guidelines 2.1, level AA."""
SURFACES = ("bg", "card", "soft")
NOW = datetime(2026, 4, 5, tzinfo=timezone.utc)


def themes() -> dict[str, dict[str, str]]:
    """Return the colours of both themes by name; choosing dark equals a dark system."""
    light, asked, chosen = (
        dict(re.findall(r"--([\w-]+):(#\w+)", block)) for block in re.findall(r":root[^{]*\{([^}]*)\}", CSS)
    )
    assert asked == chosen
    assert asked.keys() == light.keys()
    return {"light": light, "dark": asked}


def luminance(colour: str) -> float:
    """Return the relative luminance of `#rgb` or `#rrggbb` (WCAG 2.1)."""
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_that_of_the_guidelines() -> None:
    assert contrast("#000", "#fff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_has_enough_contrast_on_every_surface(theme: str) -> None:
    colours = themes()[theme]
    texts = set(re.findall(r"(?<![\w-])color:var\(--([\w-]+)\)", CSS))
    texts |= {found[1] for found in re.findall(r"(text|\.owner|\.layer)\{[^}]*?fill:var\(--([\w-]+)\)", CSS)}
    assert {"ink", "muted", "accent", "good", "bad", "warn"} <= texts
    pairs = {(text, surface) for text in texts for surface in SURFACES}
    pairs |= {(text, f"{text}-bg") for text in texts if f"{text}-bg" in colours}
    low = {pair: round(contrast(*(colours[name] for name in pair)), 2) for pair in pairs}
    assert {pair: found for pair, found in low.items() if found < LEAST} == {}


def test_no_text_is_made_pale() -> None:
    rules = re.findall(r"([^{}]*)\{[^}]*opacity:([\d.]+)", CSS)
    assert {selector.strip() for selector, opacity in rules if opacity != "1"} == {
        ".lineage path",
        ".lineage.pointed path",
    }


class Elements(HTMLParser):
    """The elements of a page: tag, attributes, and the tag around it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a blog with two weeks of page views, of which only the visits have landed."""
    lake = published.deployment(tmp_path_factory.mktemp("home"))
    write(lake, [View(time=START, visit="v", visitor="u", page="/"), *random_views(14 * 24, seed=5)])
    published.land(lake, "visits", "2026-01-05T00", {"a.json": "{}"})
    published.bronze(lake.lake, {"2026-01-05T00": {"2026-01-05T00": 1}})
    return blog_report.compute(lake.lake, lake.landing_zone, Path(lake.checkpoints_path), now=NOW).html()


def test_every_header_of_a_table_says_what_it_heads(page: str) -> None:
    headers = [attributes for tag, attributes in Elements(page).found if tag == "th"]
    assert len(headers) > 50
    assert {attributes.get("scope") for attributes in headers} == {"col", "row"}


def test_only_controls_look_like_controls(page: str) -> None:
    pointed = {
        selector
        for selectors in re.findall(r"([^{}]*)\{[^}]*cursor:pointer", CSS)
        for selector in selectors.strip().split(",")
    }
    assert pointed == {"#theme", ".choice button", ".tabs .figure", "details>summary", "th button", ".link"}
    found = Elements(page).found
    # In the page's HTML, all elements with these classes are buttons or links.
    assert {tag for tag, attributes in found if "data-line" in attributes} == {"button"}
    assert {tag for tag, attributes in found if (attributes.get("class") or "").split()[:1] == ["pill"]} <= {"a"}
    assert {tag for tag, attributes in found if attributes.get("class") == "link"} == {"button"}
    assert not [tag for tag, attributes in found if attributes.get("role") == "button"]


def test_a_choice_has_at_least_two_buttons(page: str) -> None:
    choices = re.findall(r'<div class="choice[^>]*>(.*?)</div>', page, re.DOTALL)
    assert choices
    assert all(choice.count("<button") > 1 for choice in choices)


def test_the_page_omits_parts_without_data(page: str) -> None:
    for absent in ("Sessions", "Campaigns", "campaign", "Samples, without what they say"):
        assert f">{absent}<" not in page
    shown = set(re.findall(r'<tr id="([\w.]+)"', page))
    # The visits have landed; users, ads and streamed tables have no source.
    assert {"bronze.visits", "silver.visits", "silver.late_visits", "gold.sessions_daily"} <= shown
    assert not {name for name in shown if name.endswith("_live") or "ad" in name.split(".")[1].split("_")}
    assert not shown & {"bronze.users", "silver.devices", "gold.campaign_stats", "silver.visits_live_aside"}
    assert set(re.findall(r'<g class="box[^>]*data-name="(?!landing)([\w.]+)"', page)) == shown
