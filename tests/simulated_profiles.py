"""Profiles of a growing blog, day by day: rows come in visits whose rows are alike, and weekends differ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from random import Random

from blogdata.patterns.quality.drift import QUANTILES, ColumnProfile, Profile
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, key_of
from blogdata.publish.schema import Column, Partitioning

START = datetime(2026, 1, 5, tzinfo=timezone.utc)
VISITS = Contract(
    dataset="simulated.visits",
    description="The profiled dataset of the blog",
    owner="team:platform",
    columns=(
        Column(name="hour", type="STRING", nullable=False, description="Hour"),
        Column(name="browser", type="STRING", description="A category"),
        Column(name="lateness", type="DOUBLE", description="A number"),
    ),
    partitioning=Partitioning(column="hour", grain=Grain.HOUR),
    profiled=("browser", "lateness"),
)
ON_WEEKDAYS = {"Chrome": 0.5, "Safari": 0.25, "Firefox": 0.15, "Edge": 0.08, "Opera": 0.02}
ON_WEEKENDS = {"Chrome": 0.4, "Safari": 0.4, "Firefox": 0.15, "Edge": 0.03, "Opera": 0.02}
SIZES = (200, 5_000, 1_000_000)
"""Rows a day of the blogs."""
DAYS = 91
_ALIKE = 4
"""Rows of a visit, which are alike."""
_MOOD = 0.06
"""Relative difference of a share from one day to the next."""
_DRAWN = 1_000
"""Visits drawn one by one; of a larger day so many groups are drawn, which vary more, not less."""


def profile(random: Random, day: int, rows: int, *, browsers: Mapping[str, float] | None = None) -> Profile:
    """Simulate the profile of a day; day 0 is a Monday, whose usual shares of browsers are others than a weekend's."""
    usual = browsers or (ON_WEEKENDS if day % 7 >= 5 else ON_WEEKDAYS)
    weights = [share * math.exp(random.gauss(0, _MOOD)) for share in usual.values()]
    visits = max(rows // _ALIKE, 1)
    groups = min(visits, _DRAWN)
    drawn = Counter(random.choices(list(usual), weights, k=groups))
    counts = {name: round(count * rows / groups) for name, count in drawn.items()}
    mood = math.exp(random.gauss(0, _MOOD))
    late = sorted(mood * random.lognormvariate(3, 1) for _ in range(groups))
    quantiles = [late[round(probability * (len(late) - 1))] for probability in QUANTILES]
    return Profile(
        period=key_of(START + timedelta(days=day), Grain.DAY),
        version=day,
        rows=sum(counts.values()),
        columns={
            "browser": ColumnProfile(null_share=0, distinct=len(counts), counts=counts),
            "lateness": ColumnProfile(null_share=0, distinct=0, quantiles=quantiles),
        },
    )


def profiles(random: Random, rows: int, days: range) -> list[Profile]:
    """Simulate the profiles of a growing blog; three days of a quarter are holidays with fewer rows."""
    return [profile(random, day, int(rows * (1 + day / DAYS) * (0.4 if day in (20, 21, 60) else 1.0))) for day in days]
