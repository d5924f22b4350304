"""Rows of forgotten persons in a table of a database do not come back by a load.

Patterns: Incremental Loader, In-Place Overwriter.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import psycopg
import pytest

from assets import table_loads
from blogdata.landing.landed_persons import Identifiers
from blogdata.landing.lines import FILLER
from blogdata.landing.suppression_list import SuppressionList
from blogdata.operate import config
from blogdata.operate.config import Settings, TableSettings

BOB = Identifiers(user_ids=frozenset({"user-bob-1"}), logins=frozenset({"bob"}))
FORGOTTEN = datetime(2026, 5, 1, tzinfo=timezone.utc).timestamp()


@pytest.fixture
def home(tmp_path: Path, database: str) -> Settings:
    """A deployment that loads visits, in which Bob was forgotten."""
    (tmp_path / "home").mkdir()
    found = config.load(overrides={"BLOGDATA_HOME": str(tmp_path / "home")})
    SuppressionList.of(found).add(BOB, FORGOTTEN)
    tables = TableSettings(url=database, users="users", legacy_visits="visits", since="2026-04-01")
    return replace(found, tables=tables)


def users(home: Settings) -> list[str]:
    return [json.loads(line)["user_id"] for line in _left(home)]


def _left(home: Settings) -> list[bytes]:
    lines = [line for file in home.landing.rglob("*.json*") for line in file.read_bytes().splitlines()]
    assert not any(b"bob" in line for line in lines)
    return [line for line in lines if line.strip(FILLER)]


def test_incremental_loader_lands_nothing_of_forgotten_persons(home: Settings, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as source:
        source.execute(
            "CREATE TABLE visits (visit_id text, event_time timestamptz, user_id text, keep_private boolean, page text,"
            " referral text, ad_id text, ip text, login text, connected_since timestamptz, browser text,"
            " browser_version text, network_type text, device_type text, device_version text,"
            " ingestion_time timestamptz, is_deleted boolean)"
        )
        for user, login in (("user-bob-1", None), ("other", "bob"), ("user-ann-2", "ann")):
            source.execute(
                "INSERT INTO visits (visit_id, event_time, user_id, page, login, ingestion_time)"
                " VALUES ('v', '2026-04-01 10:05+00', %s, '/', %s, '2026-04-01 10:06+00')",
                [user, login],
            )
        for _ in range(2):
            table_loads.load_windows(home, table_loads.LEGACY_VISITS, ["2026-04-01T10"])
    assert users(home) == ["user-ann-2"]
    # What was overwritten is compared as rows that have not landed; it lands once, with the first load.
    assert len(list(home.landing.rglob("legacy_visits-*"))) == 1
