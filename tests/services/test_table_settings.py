from __future__ import annotations

from pathlib import Path

import pytest

from blogdata.errors import ConfigurationError
from blogdata.services import config
from blogdata.services.table_settings import TableSettings


def read(home: Path, text: str) -> TableSettings:
    (home / "blogdata.toml").write_text(f"[tables]\n{text}")
    return config.load({"HOME": str(home), "BLOGDATA_HOME": str(home)}).tables


def test_tables_are_named_by_the_settings(tmp_path: Path) -> None:
    text = """
        url = "postgresql://reader@db/blog"
        secret = "tables"
        devices = "shop.devices"
        users = "shop.users"
        legacy_visits = "legacy_visits"
        since = "2026-01-05"
        overlap = "2h"
        provider_visits = "/srv/visits"
    """
    assert read(tmp_path, text) == TableSettings(
        url="postgresql://reader@db/blog",
        secret="tables",
        devices="shop.devices",
        users="shop.users",
        legacy_visits="legacy_visits",
        since="2026-01-05",
        overlap=7200.0,
        provider_visits=Path("/srv/visits"),
    )
    assert not read(tmp_path, "").any


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('devices = "a.b.c"', "not the name of a table"),
        ("devices = 'a\"; DROP'", "not the name of a table"),
        ('legacy_visits = "v"', "the first day to load is missing"),
        ('users = "v"', "the first day to load is missing"),
        ('provider_visits = "visits"', "not the path of a folder"),
        ('url = "postgresql://a:b@db/c"\nsecret = "tables"', "has a password, and secret names another one"),
    ],
)
def test_settings_of_tables_that_cannot_be_used_are_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        read(tmp_path, text)
