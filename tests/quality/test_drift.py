"""When a distribution counts as another one: a quarter of ordinary days, and faults put into some of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from errors import ConfigurationError
from patterns.quality.drift import QUANTILES, ColumnProfile, Drift, Profile, comparable, drifts
from patterns.quality.offline_observer import require_profilable
from publish.contract import Contract
from publish.partitions import Grain, key_of
from publish.schema import Classification, Column, Partitioning

VISITS = Contract(
    dataset="silver.hits",
    description="Hits",
    owner="team:tests",
    columns=(
        Column(name="hour", type="STRING", nullable=False, description="Hour"),
        Column(name="browser", type="STRING", description="Browser"),
        Column(name="late", type="DOUBLE", description="Seconds"),
        Column(name="login", type="STRING", classification=Classification.PERSONAL, description="Login"),
    ),
    partitioning=Partitioning(column="hour", grain=Grain.HOUR),
    profiled=("browser", "late"),
)
WEEK = {"Chrome": 0.5, "Safari": 0.25, "Firefox": 0.15, "Edge": 0.08, "Opera": 0.02}
WEEKEND = {"Chrome": 0.4, "Safari": 0.4, "Firefox": 0.15, "Edge": 0.03, "Opera": 0.02}
FIRST = datetime(2026, 1, 5, tzinfo=timezone.utc)
SESSION = 4
"""Page views of a session, all with the same browser."""


def _day(
    draw: np.random.Generator, index: int, *, rows: int, browsers: Mapping[str, float] | None = None, slower: float = 1
) -> Profile:
    """Profile a day: weekends differ, rows come in sessions, and every day differs a little from the next."""
    day = FIRST + timedelta(days=index)
    usual = browsers or (WEEKEND if day.weekday() >= 5 else WEEK)
    shares = draw.dirichlet(np.array(list(usual.values())) * 400)
    sessions = draw.multinomial(max(rows // SESSION, 1), shares)
    counts = Counter({name: int(count) * SESSION for name, count in zip(usual, sessions, strict=True) if count})
    late = np.sort(draw.lognormal(3, 1, min(rows // SESSION, 5_000)) * slower * draw.normal(1, 0.05))
    return Profile(
        period=key_of(day, Grain.DAY),
        version=index,
        rows=sum(counts.values()),
        columns={
            "browser": ColumnProfile(null_share=0, distinct=len(counts), counts=counts),
            "late": ColumnProfile(null_share=0, distinct=0, quantiles=[float(np.quantile(late, q)) for q in QUANTILES]),
        },
    )


def _quarter(seed: int, *, rows: int, days: Sequence[int] = range(90)) -> list[Profile]:
    """Days that grow, with a dip on holidays."""
    draw = np.random.default_rng(seed)
    sizes = {index: int(rows * (1 + index / 90) * (0.4 if index in (20, 21, 60) else 1)) for index in days}
    return [_day(draw, index, rows=size) for index, size in sizes.items()]


def _found(days: Sequence[Profile]) -> list[Drift]:
    return [drift for index, day in enumerate(days) for drift in drifts(day, days[:index], VISITS)]


@pytest.mark.parametrize("rows", [200, 5_000, 1_000_000])
def test_a_quiet_quarter_raises_nothing(rows: int) -> None:
    assert [drift for seed in range(3) for drift in _found(_quarter(seed, rows=rows))] == []


def test_seeded_faults_are_found_on_their_day() -> None:
    found = 0
    for seed in range(200):
        draw = np.random.default_rng(1_000 + seed)
        at = int(draw.integers(30, 90))
        before = _quarter(seed, rows=4_000, days=range(at - 28, at))
        browser = list(WEEK)[seed % len(WEEK)]
        broken = {name: 0.9 if name == browser else 0.1 * share / (1 - WEEK[browser]) for name, share in WEEK.items()}
        by_browser = seed % 2 == 0
        day = _day(draw, at, rows=4_000, browsers=broken) if by_browser else _day(draw, at, rows=4_000, slower=4)
        found += {drift.column for drift in drifts(day, before, VISITS)} == {"browser" if by_browser else "late"}
    assert found >= 196, "at least 98 % of the faults, and nothing beside them"


def test_few_rows_or_few_days_are_not_judged() -> None:
    draw = np.random.default_rng(1)
    days = _quarter(1, rows=2_000)
    other = {"Opera": 1.0}
    assert drifts(_day(draw, 89, rows=60, browsers=other), days[:89], VISITS) == []
    assert drifts(_day(draw, 2, rows=2_000, browsers=other), days[:2], VISITS) == []
    assert drifts(_day(draw, 89, rows=2_000, browsers=other), days[:89], VISITS) != []


def test_a_day_is_compared_with_its_weekday() -> None:
    days = _quarter(1, rows=100)
    assert [one.period for one in comparable(days[89], days[:89], Grain.HOUR)] == [
        days[89 - 7 * back].period for back in range(1, 5)
    ]
    assert [one.period for one in comparable(days[10], days[:10], Grain.HOUR)] == [one.period for one in days[3:10]]
    whole = [Profile(period="", version=version, rows=5, columns={}) for version in range(9)]
    assert [one.version for one in comparable(whole[8], whole[:8], None)] == [4, 5, 6, 7]


def test_personal_columns_cannot_be_profiled() -> None:
    from dataclasses import replace

    with pytest.raises(ConfigurationError, match="login, nobody"):
        require_profilable(replace(VISITS, profiled=("browser", "login", "nobody")))
