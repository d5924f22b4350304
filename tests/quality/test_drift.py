"""Offline Observer: when a distribution counts as changed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from blogdata.errors import ConfigurationError
from blogdata.patterns.quality.drift import Profile, comparable, drifts
from blogdata.patterns.quality.offline_observer import require_profilable
from blogdata.publish.partitions import Grain
from blogdata.publish.schema import Classification, Column
from simulated_profiles import SIZES, VISITS, profiles


def test_quiet_days_of_any_size_raise_nothing() -> None:
    for rows in SIZES:
        days = profiles(Random(f"a quarter of {rows}"), rows, range(60))
        assert [drift for at, day in enumerate(days) for drift in drifts(day, days[:at], VISITS)] == []


def test_a_day_is_compared_with_its_weekday() -> None:
    days = profiles(Random(1), 100, range(90))
    assert [one.period for one in comparable(days[89], days[:89], Grain.HOUR)] == [
        days[89 - 7 * back].period for back in range(1, 5)
    ]
    assert [one.period for one in comparable(days[10], days[:10], Grain.HOUR)] == [one.period for one in days[3:10]]
    whole = [Profile(period="", version=version, rows=5, columns={}) for version in range(9)]
    assert [one.version for one in comparable(whole[8], whole[:8], None)] == [4, 5, 6, 7]


def test_personal_columns_cannot_be_profiled() -> None:
    login = Column(name="login", type="STRING", classification=Classification.PERSONAL, description="Login")
    contract = replace(VISITS, columns=(*VISITS.columns, login), profiled=("browser", "login", "nobody"))
    with pytest.raises(ConfigurationError, match="login, nobody"):
        require_profilable(contract)
