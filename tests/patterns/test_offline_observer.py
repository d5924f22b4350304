import math
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from random import Random

import pytest

from blogdata.contract.partitions import Grain, key_of
from blogdata.contract.schema import Classification, Column
from blogdata.errors import ConfigurationError
from blogdata.patterns.quality.offline_observer import (
    BEFORE_WEEKDAYS,
    Drift,
    Profile,
    comparable,
    drifts,
    require_profilable,
    standing_drifts,
    unseen,
)
from toy import declared, entry

DAY, NEXT = "2026-01-05", "2026-01-06"
START = datetime(2026, 1, 5, tzinfo=timezone.utc)
VISITS = declared("simulated.visits", "hour STRING NOT NULL, browser STRING", by="hour", profiled=("browser",))
ON_WEEKDAYS = {"Chrome": 0.5, "Safari": 0.25, "Firefox": 0.15, "Edge": 0.08, "Opera": 0.02}
ON_WEEKENDS = {"Chrome": 0.4, "Safari": 0.4, "Firefox": 0.15, "Edge": 0.03, "Opera": 0.02}


def day(random: Random, number: int, rows: int) -> Profile:
    """Simulate the profile of a day; day 0 is a Monday, whose usual shares of browsers are others than a weekend's."""
    usual = ON_WEEKENDS if number % 7 >= 5 else ON_WEEKDAYS
    weights = [share * math.exp(random.gauss(0, 0.06)) for share in usual.values()]
    # Four rows of a visit are alike. A large day is drawn as a thousand groups, which vary more than visits, not less.
    groups = min(max(rows // 4, 1), 1_000)
    drawn = Counter(random.choices(list(usual), weights, k=groups))
    counts = {name: round(count * rows / groups) for name, count in drawn.items()}
    period = key_of(START + timedelta(days=number), Grain.DAY)
    return Profile(period=period, version=number, rows=sum(counts.values()), counts={"browser": counts})


def growing(random: Random, rows: int, days: int) -> list[Profile]:
    """Simulate a growing blog; three days of a quarter are holidays with fewer rows."""
    return [day(random, at, int(rows * (1 + at / 91) * (0.4 if at in (20, 21, 60) else 1.0))) for at in range(days)]


@pytest.mark.parametrize("rows", [200, 5_000, 1_000_000])
def test_only_a_changed_distribution_is_a_drift(rows: int) -> None:
    days = growing(Random(f"a quarter of {rows}"), rows, 60)
    assert [drift for at, new in enumerate(days) for drift in drifts(new, days[:at], VISITS)] == []
    of_one = replace(days[-1], counts={"browser": {"Chrome": days[-1].rows}})
    assert [drift.column for drift in drifts(of_one, days[:-1], VISITS)] == ["browser"]


def test_a_day_is_compared_with_its_weekday_or_else_with_a_week() -> None:
    days = growing(Random(1), 100, 90)
    assert comparable(days[89], days[:89]) == ([days[89 - 7 * back] for back in range(1, 5)], 1.0)
    assert comparable(days[10], days[:10]) == (days[3:10], BEFORE_WEEKDAYS)


def test_personal_columns_cannot_be_profiled() -> None:
    login = Column(name="login", type="STRING", classification=Classification.PERSONAL, description="Login")
    contract = replace(VISITS, columns=(*VISITS.columns, login), profiled=("browser", "login", "nobody"))
    with pytest.raises(ConfigurationError, match="login, nobody"):
        require_profilable(contract)


def looked(period: str, version: int) -> Profile:
    return Profile(period=period, version=version, rows=1, counts={})


def test_only_periods_with_something_new_are_profiled() -> None:
    versions = {f"{DAY}T10": 3, f"{DAY}T11": 7, f"{NEXT}T00": 5}
    entries = {key: entry("silver.visits", key, version) for key, version in versions.items()}
    hours = {DAY: [f"{DAY}T10", f"{DAY}T11"], NEXT: [f"{NEXT}T00"]}
    assert unseen(entries, []) == hours
    assert unseen(entries, [looked(DAY, 7), looked(NEXT, 7)]) == {}
    # A late hour makes its day one to be looked at again, with all of its hours; the newest look counts.
    looks = [looked(DAY, 4), looked(NEXT, 5), looked(NEXT, 2)]
    assert unseen(entries, looks) == {DAY: hours[DAY]}


def test_a_drift_stands_until_a_newer_period_without_one_is_looked_at() -> None:
    drift = Drift(period=NEXT, column="browser", found=1.0, limit=0.2)
    seen = [looked(DAY, 1), replace(looked(NEXT, 2), drifts=[drift])]
    assert standing_drifts([*seen, looked(DAY, 3)]) == [drift], "an older day is looked at again"
    assert standing_drifts([*seen, looked("2026-01-07", 3)]) == ()
