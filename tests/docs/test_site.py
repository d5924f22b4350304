"""The documentation site: it builds, loads nothing from another host, and every page is in its menu."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.pages import ROOT

DOCS = ROOT / "docs"
GENERATED = {"changelog.md", "contributing.md"}
"""Pages of the site that are files beside docs/; the hooks add them."""


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """MkDocs warns of links to pages and anchors that are not there."""
    if find_spec("mkdocs") is None:
        pytest.skip("MkDocs is not installed; make setup-site installs it")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "BLOGDATA_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    address = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//""")
    assert [page for page in tmp_path.rglob("*.html") if address.search(page.read_text(encoding="utf-8"))] == []


def test_the_menu_names_every_page_once_and_no_other() -> None:
    # The rest of the file has tags that name Python objects.
    nav = re.search(r"^nav:\n(?:(?: .*|#.*|)\n)*", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert nav is not None
    named = list(entries(yaml.safe_load(nav[0])["nav"]))
    assert not [name for name in named if name not in GENERATED and not (DOCS / name).exists()]
    assert len(named) == len(set(named)) > 10
    folders = tuple(name for name in named if name.endswith("/"))
    pages = {file.relative_to(DOCS).as_posix() for file in DOCS.rglob("*.md")}
    assert not [page for page in pages - set(named) if not page.startswith(folders)]


def entries(nav: Any) -> Iterator[str]:
    """List the pages and folders in a part of the menu."""
    if isinstance(nav, str):
        yield nav
    for item in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from entries(item)
