"""The README stays short, and its code is the project's."""

from __future__ import annotations

import pytest

from docs.pages import ROOT, quoted, text

QUOTED = quoted("README.md")


def test_the_readme_can_be_read_in_one_go() -> None:
    assert len(text("README.md").splitlines()) <= 160


@pytest.mark.parametrize("file", QUOTED)
def test_code_that_is_quoted_is_in_the_file_it_is_quoted_from(file: str) -> None:
    assert QUOTED[file] in (ROOT / file).read_text(encoding="utf-8")


def test_there_is_code() -> None:
    assert set(QUOTED) == {"assets/silver/enriched.py"}


def test_the_layers_are_the_same_five_boxes_on_both_first_pages() -> None:
    def boxes(page: str) -> str:
        return text(page).split("```mermaid\n")[1].split("```")[0]

    assert boxes("README.md") == boxes("docs/index.md")
    assert [
        name for name in ("landing", "bronze", "silver", "gold", "serving") if f"<b>{name}</b>" in boxes("README.md")
    ] == [
        "landing",
        "bronze",
        "silver",
        "gold",
        "serving",
    ]
