"""A page view that was made private is in no state that a partner sees. Pattern: Fine-Grained Accessor for Tables."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from blogdata.cli.role_sight import RoleSight
from blogdata.cli.sql_command import _Asked
from blogdata.errors import ConfigurationError
from blogdata.lake.lake import Lake
from blogdata.patterns.security.fine_grained_accessor_for_tables import NotForRole, Role
from blogdata.services.config import Settings

QUERY = "SELECT page FROM gold.visits_weekly"
BEFORE = datetime(2026, 1, 5, tzinfo=timezone.utc)


def test_only_who_sees_all_rows_sees_an_earlier_state(settings: Settings, tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    with pytest.raises(NotForRole, match="the role partner sees the newest state only"):
        _Asked.of(lake, QUERY, BEFORE, RoleSight(role=Role.PARTNER, settings=settings))
    # These get as far as the lake, which has no tables.
    for role, moment in ((Role.PARTNER, None), (Role.ANALYST, BEFORE)):
        with pytest.raises(ConfigurationError) as refused:
            _Asked.of(lake, QUERY, moment, RoleSight(role=role, settings=settings))
        assert not isinstance(refused.value, NotForRole)
