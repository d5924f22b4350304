"""The README stays short, and its code quotes equal the project's code."""

from __future__ import annotations

import pytest

from docs.pages import ROOT, quoted, text

QUOTED = quoted("README.md")


def test_the_readme_has_at_most_130_lines() -> None:
    assert len(text("README.md").splitlines()) <= 130


@pytest.mark.parametrize("file", QUOTED)
def test_quoted_code_is_in_its_file(file: str) -> None:
    assert QUOTED[file] in (ROOT / file).read_text(encoding="utf-8")


def test_the_readme_quotes_an_asset() -> None:
    assert set(QUOTED) == {"assets/gold/page_views.py"}


def test_both_first_pages_show_the_same_layers() -> None:
    def boxes(page: str) -> str:
        return text(page).split("```mermaid\n")[1].split("```")[0]

    assert boxes("README.md") == boxes("docs/index.md")
    assert [
        name for name in ("landing", "bronze", "silver", "gold", "serving") if f"<b>{name}</b>" in boxes("README.md")
    ] == ["landing", "bronze", "silver", "gold", "serving"]
