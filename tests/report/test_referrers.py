"""The kind of a site is that of its host, from the project's table and unmodified public lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets.report.referrers import Referrers, known
from blogdata.errors import ConfigurationError

ENGINES = """
360search:
  -
    urls:
      - so.example
      - 'find.{}'
    params:
      - q
  - urls: ['{}.finder.example', 'finder.example/images']
    params: []
"""
NETWORKS = "Nook:\n  - nook.example\n  - android-app://org.nook.messenger\n"
ASSISTANTS = "Grok:\n  - ask.nook.example\n  - nook.example/i/ask\n"


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


def test_public_lists_are_read_as_they_are(tmp_path: Path) -> None:
    lists = {
        "SearchEngines.yml": ENGINES,
        "Socials.yml": NETWORKS,
        "AIAssistants.yml": ASSISTANTS,
        "spammers.txt": "buttons.example\n\nseo-offers.example\n",
    }
    for name, text in lists.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = Referrers.read(files=[tmp_path / name for name in lists])
    kinds = {
        "www.so.example": "search",
        "find.fr": "search",
        "de.finder.example": "search",
        # An entry with a path does not classify its host.
        "finder.example": "other sites",
        "m.nook.example": "social",
        "org.nook.messenger": "social",
        "ask.nook.example": "AI assistant",
        "free.buttons.example": "referrer spam",
        "seo-offers.example": "referrer spam",
        "duckduckgo.com": "search",
    }
    assert {host: found.kind_of(host).value for host in kinds} == kinds


def test_a_later_file_holds_and_may_have_several_kinds(tmp_path: Path) -> None:
    own = tmp_path / "mine.yml"
    own.write_text("mail: [letters.example]\nother sites: [medium.com]\nspam: [t.co]\n", encoding="utf-8")
    found = Referrers.read(files=[own])
    assert [found.kind_of(host).value for host in ("letters.example", "medium.com", "t.co")] == [
        "mail",
        "other sites",
        "referrer spam",
    ]


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("hosts.txt", b"a.example", "does not say of which kind its hosts are"),
        ("spam.txt", None, "cannot be read"),
        ("spam.txt", b"\xff", "cannot be read"),
        ("search.yml", b"a: [", "cannot be read"),
        ("search.yml", b"a: b", "has something else where a list of hosts is expected"),
        ("search.yml", b"a: [{params: [q]}]", "has something else where a list of hosts is expected"),
    ],
)
def test_a_list_that_cannot_be_used_is_named(tmp_path: Path, name: str, content: bytes | None, what: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match=f"list of referrers {what}") as raised:
        Referrers.read(files=[tmp_path / name])
    assert str(tmp_path / name) in str(raised.value)
