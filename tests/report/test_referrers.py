"""The kind of a site is that of its host, from the project's table and files of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets.report.referrers import Referrers, known
from blogdata.errors import ConfigurationError


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("direct", "no referrer"),
        ("unknown", "unknown"),
        ("www.google.com", "search"),
        ("google.de", "search"),
        ("www.google.co.uk", "search"),
        ("www.google.com.br", "search"),
        ("r.duckduckgo.com", "search"),
        ("de.search.yahoo.com", "search"),
        ("mail.google.com", "mail"),
        ("com.google.android.gm", "mail"),
        ("gemini.google.com", "AI assistant"),
        # Most hosts of a search engine's domain are no search pages, and others only look like one.
        ("docs.google.com", "other sites"),
        ("google.evil.example", "other sites"),
        ("notduckduckgo.com", "other sites"),
        ("l.facebook.com", "social"),
        ("old.reddit.com", "social"),
        ("chatgpt.com", "AI assistant"),
        ("203.0.113.7", "other sites"),
    ],
)
def test_the_projects_table(host: str, kind: str) -> None:
    assert known().kind_of(host).value == kind


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("www.facebook.com", "facebook.com"),
        ("l.facebook.com", "facebook.com"),
        ("google.co.uk", "google.co.uk"),
        ("docs.google.com", "docs.google.com"),
        ("notes.blog.example", "notes.blog.example"),
        ("direct", "direct"),
        ("www.", ""),
    ],
)
def test_a_host_and_its_site_are_of_one_kind(host: str, site: str) -> None:
    assert known().site_of(host) == site
    assert known().kind_of(site) is known().kind_of(host)


def test_a_later_file_holds(tmp_path: Path) -> None:
    own = tmp_path / "mine.yml"
    own.write_text(
        "mail: [letters.example]\nother sites: [medium.com]\nspam: [t.co, https://seo.example/]\n"
        "search: ['find.{}', finder.example/images]\n",
        encoding="utf-8",
    )
    found = Referrers.read(files=[own])
    kinds = {
        "letters.example": "mail",
        "medium.com": "other sites",
        "t.co": "referrer spam",
        "free.seo.example": "referrer spam",
        "find.fr": "search",
        # An entry with a path does not classify its host.
        "finder.example": "other sites",
        "duckduckgo.com": "search",
    }
    assert {host: found.kind_of(host).value for host in kinds} == kinds


@pytest.mark.parametrize("content", [None, b"\xff", b"a: [", b"a.example", b"engines: [a.example]"])
def test_a_list_that_cannot_be_used_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "mine.yml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError, match="list of referrers cannot be read") as raised:
        Referrers.read(files=[file])
    assert str(file) in str(raised.value)
