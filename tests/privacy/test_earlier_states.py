"""A page view that was made private is in no state that others see. Pattern: Fine-Grained Accessor for Tables."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from blogdata.deliver.query import Query, RoleSight
from blogdata.errors import ConfigurationError
from blogdata.operate.config import Settings
from blogdata.patterns.security.fine_grained_accessor_for_tables import Role
from blogdata.table.lake import Lake

QUERY, COUNTS = "SELECT page FROM gold.visits_weekly", "SELECT page FROM gold.page_stats"
BEFORE = datetime(2026, 1, 5, tzinfo=timezone.utc)


def test_only_who_sees_all_rows_sees_an_earlier_state(settings: Settings, tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    for query, role in ((COUNTS, Role.PARTNER), (QUERY, Role.ANALYST)):
        with pytest.raises(ConfigurationError, match=f"the role {role.value} sees the newest state only"):
            Query.of(lake, query, BEFORE, RoleSight(role=role, settings=settings))
    # These get as far as the lake, which has no tables.
    for query, role, moment in (
        (COUNTS, Role.PARTNER, None),
        (QUERY, Role.ANALYST, None),
        (COUNTS, Role.ANALYST, BEFORE),
        (QUERY, Role.ENGINEER, BEFORE),
    ):
        with pytest.raises(ConfigurationError, match="there is no"):
            Query.of(lake, query, moment, RoleSight(role=role, settings=settings))
