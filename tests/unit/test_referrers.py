"""The kind of a site is that of its host, from the project's table."""

from __future__ import annotations

import pytest

from assets.referrers import kind_of, site_of


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
    assert kind_of(host).value == kind


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
    assert site_of(host) == site
    assert kind_of(site) is kind_of(host)
