"""The pages of the patterns: their sections, and their list by chapter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.pages import PROJECT
from tools import pattern_pages
from tools.pattern_index import Pattern


@pytest.fixture(scope="module")
def patterns() -> dict[str, Pattern]:
    return {pattern.name: pattern for pattern in PROJECT.patterns}


def test_a_page_has_its_sections_in_order(patterns: dict[str, Pattern]) -> None:
    text = pattern_pages.render([patterns["Dead-Letter"]])[Path("docs/patterns/dead_letter.md")]
    sections = ["Problem", "How it works", "The trap", "When not to use it", "Where it works in the lineage"]
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == sections


def test_the_list_of_the_readme_is_by_chapter(patterns: dict[str, Pattern]) -> None:
    chosen = [patterns[name] for name in ("Full Loader", "Readiness Marker", "Proxy")]
    assert pattern_pages.listed(chosen).splitlines() == [
        "- Ingestion: [Full Loader](docs/patterns/full_loader.md), "
        "[Readiness Marker](docs/patterns/readiness_marker.md)",
        "- Idempotency: [Proxy](docs/patterns/proxy.md)",
    ]
