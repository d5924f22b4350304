"""Accepted and refused values of `[logs.exclude]` and `[logs.crawlers]`."""

from __future__ import annotations

from pathlib import Path

import pytest

from blogdata.errors import ConfigurationError
from blogdata.services import config
from blogdata.services.log_filters import LogFilters


def load(home: Path, text: str) -> LogFilters:
    (home / "blogdata.toml").write_text(text, encoding="utf-8")
    return config.load({"BLOGDATA_HOME": str(home)}).logs.filters


def test_nothing_is_excluded_by_default(tmp_path: Path) -> None:
    assert load(tmp_path, "") == LogFilters()
    assert LogFilters().version == "default"


def test_all_settings(tmp_path: Path) -> None:
    filters = load(
        tmp_path,
        """
        [logs.exclude]
        addresses = ["203.0.113.7", "2001:DB8::/32"]
        agents = ["My-Check"]
        paths = ["/admin/", "*.php"]
        [logs.crawlers]
        addresses = ["198.51.100.0/24", "::ffff:192.0.2.9"]
        robots_txt = false
        most_views = 300
        """,
    )
    assert filters == LogFilters(
        addresses=("203.0.113.7/32", "2001:db8::/32"),
        agents=("my-check",),
        paths=("/admin/", "*.php"),
        crawler_addresses=("198.51.100.0/24", "192.0.2.9/32"),
        robots_txt=False,
        most_views=300,
    )
    assert filters.version not in ("default", LogFilters(most_views=300).version)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[logs]\nexclude = "x"', "unknown setting 'exclude'"),
        ('[logs.exclude]\naddress = ["203.0.113.7"]', "unknown setting 'address'"),
        ('[logs.exclude]\naddresses = ["203.0.113.7/24"]', "has host bits set"),
        ('[logs.exclude]\naddresses = ["localhost"]', "'localhost' is no address or network"),
        ('[logs.exclude]\npaths = ["admin/"]', "no path begins like 'admin/'"),
        ('[logs.exclude]\nagents = "x"', "agents is not a list of texts"),
        ("[logs.crawlers]\nmost_views = 0", "0 is not a number this setting takes"),
        ("[logs.crawlers]\nmost_views = 1.5", "1.5 is not a whole number this setting takes"),
        ('[logs.crawlers]\nrobots_txt = "no"', "'no' is neither true nor false"),
    ],
)
def test_an_error_names_the_value_and_its_place(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as raised:
        load(tmp_path, text)
    assert "blogdata.toml" in raised.value.where
