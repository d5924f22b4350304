"""The documentation site: no dead link, nothing loaded from another host, and every page in its menu."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from docs.pages import ROOT

DOCS = ROOT / "docs"
GENERATED = {"changelog.md", "contributing.md"}
"""Pages of the site that are files beside docs/; the hooks add them."""
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class _Tolerant(yaml.SafeLoader):
    """Loads a YAML file and ignores tags that name Python objects."""


_Tolerant.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


@dataclass
class Html(HTMLParser):
    """Addresses that a built page loads, its links, and its ids."""

    loads: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the addresses and the id of an element."""
        values = {name: value for name, value in attrs if value is not None}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if LOADED.get(tag) in values and values.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(values[LOADED[tag]])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])

    @classmethod
    def of(cls, text: str) -> Html:
        """Parse a page."""
        page = cls()
        page.feed(text)
        return page


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Html]:
    """Every page of the built site."""
    if find_spec("mkdocs") is None:
        pytest.skip("MkDocs is not installed; make setup-site installs it")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "BLOGDATA_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    # A server shows 404.html at any address, so its links begin at the root.
    pages = [file for file in folder.rglob("*.html") if file.name != "404.html"]
    return {file: Html.of(file.read_text(encoding="utf-8")) for file in pages}


def test_no_page_loads_anything_from_another_host(site: dict[Path, Html]) -> None:
    assert foreign(site) == []


def test_every_link_leads_to_an_existing_target(site: dict[Path, Html]) -> None:
    assert dead(site) == []


def test_the_menu_names_pages_that_exist() -> None:
    named = list(entries(menu()))
    assert named
    assert not [name for name in named if name not in GENERATED and not (DOCS / name).exists()]
    assert len(named) == len(set(named))


def test_every_page_is_in_the_menu() -> None:
    named = set(entries(menu()))
    folders = tuple(name for name in named if name.endswith("/"))
    pages = {file.relative_to(DOCS).as_posix() for file in DOCS.rglob("*.md")}
    assert not [page for page in pages - named if not page.startswith(folders)]


def menu() -> Any:
    """Read the menu."""
    return yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=_Tolerant)["nav"]


def entries(nav: Any) -> Iterator[str]:
    """List the pages and folders in a part of the menu."""
    if isinstance(nav, str):
        yield nav
    for item in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from entries(item)


def foreign(site: dict[Path, Html]) -> list[str]:
    """List the addresses with a host that pages load."""
    return [
        f"{file.name}: {address}" for file, page in site.items() for address in page.loads if urlsplit(address).netloc
    ]


def dead(site: dict[Path, Html]) -> list[str]:
    """List links and loaded files without a target on the site."""
    found = []
    for file, page in site.items():
        for address in (*page.loads, *page.links):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = Path(os.path.normpath(file.parent / unquote(parts.path))) if parts.path else file
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in site and anchor not in site[target].ids):
                found.append(f"{file.name}: {address}")
    return found
