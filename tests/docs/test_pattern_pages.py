"""The pages of the patterns: their content, the targets of their links, and errors for missing pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.pages import PROJECT, ROOT
from tools import pattern_pages
from tools.pattern_index import Pattern

LINK = re.compile(r"\]\(([^)#\s]+)(?:#([^)\s]+))?\)")
GENERATED = sorted((ROOT / "docs" / "patterns").glob("*.md"))


@pytest.fixture(scope="module")
def patterns() -> dict[str, Pattern]:
    return {pattern.name: pattern for pattern in PROJECT.patterns}


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.stem)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    found = LINK.findall(page.read_text(encoding="utf-8"))
    assert found
    dead = []
    for target, anchor in found:
        file = page.parent / target
        if not file.exists() or (anchor and anchor not in anchors(file)):
            dead.append(f"{target}#{anchor}")
    assert not dead


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


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
