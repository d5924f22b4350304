"""Simulates the recorded figures of a blog, hour by hour: what its event log and landing zone would say, without rows.

Months of a deployment take milliseconds, with a known truth: the rhythm of the day and the week, holidays, growth,
visitors who bring several rows, late rows, and jobs of varying duration.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from random import Random

BUCKETS = 16
"""Number of hash buckets of visitors."""
START = datetime(2026, 1, 5, tzinfo=timezone.utc)
"""The first hour: midnight of a Monday."""
_DAY = (28, 20, 15, 12, 12, 16, 26, 42, 62, 76, 82, 80, 74, 78, 84, 86, 84, 80, 78, 82, 84, 76, 60, 42)
_WEEK = (1.08, 1.14, 1.15, 1.12, 1.02, 0.72, 0.77)
_PAGES = 5.0
"""Mean rows of a visit."""
_MANY = 30.0
"""Mean above which counts are drawn from a normal distribution."""
_SHARE_LATE = 0.03


@dataclass(frozen=True, kw_only=True)
class Blog:
    """A blog whose figures are simulated; the same blog always has the same figures.

    Args:
        seed: Seed of all random choices.
        rows: Mean rows of an hour in the first week.
        weeks: Length of the span.
        growth: Relative growth of the volume in a week.
        holidays: Number of days with about two thirds of the usual volume.
    """

    seed: int
    rows: float
    weeks: int = 13
    growth: float = 0.02
    holidays: int = 4


@dataclass(frozen=True, kw_only=True)
class RecordedHour:
    """What is recorded of one hour.

    Args:
        key: Its partition key.
        start: Its first instant.
        rows: Rows that landed for it.
        late: Rows of it that landed an hour later.
        buckets: Rows by hash bucket of the visitor.
        landed_at: When it was flagged as complete; an hour without rows is flagged, too.
        seconds: Duration of the job that published it.
        published_at: When it was published.
    """

    key: str
    start: datetime
    rows: int
    late: int
    buckets: Sequence[int]
    landed_at: datetime
    seconds: float
    published_at: datetime


def hours(blog: Blog) -> list[RecordedHour]:
    """Simulate all hours of a blog, in order."""
    random = Random(blog.seed)
    quiet_days = set(random.sample(range(blog.weeks * 7), blog.holidays))
    return [_hour(blog, random, number, quiet_days) for number in range(blog.weeks * 7 * 24)]


def _hour(blog: Blog, random: Random, number: int, holidays: set[int]) -> RecordedHour:
    start = START + timedelta(hours=number)
    day = number // 24
    rhythm = _DAY[number % 24] / (sum(_DAY) / 24) * _WEEK[day % 7] * (0.65 if day in holidays else 1.0)
    # A day as a whole is better or worse than others, by the articles that are read.
    mood = math.exp(Random(f"{blog.seed} {day}").gauss(0, 0.06))
    mean = blog.rows * rhythm * mood * (1 + blog.growth) ** (day / 7)
    visits = _poisson(random, mean / _PAGES)
    buckets = [0] * BUCKETS
    for _ in range(min(visits, 200)):
        # A busy hour is drawn in 200 groups of visits, which have the same mean.
        buckets[int(random.random() * BUCKETS)] += _rows(random, max(1.0, visits / 200))
    rows = sum(buckets)
    landed_at = start + timedelta(hours=1, minutes=1 + 9 * random.random() ** 3)
    seconds = (8 + rows / 2000) * math.exp(random.gauss(0, 0.25))
    return RecordedHour(
        key=f"{start:%Y-%m-%dT%H}",
        start=start,
        rows=rows,
        late=_poisson(random, rows * _SHARE_LATE),
        buckets=buckets,
        landed_at=landed_at,
        seconds=seconds,
        published_at=landed_at + timedelta(seconds=60 * random.random() + seconds),
    )


def _rows(random: Random, visits: float) -> int:
    """Draw the rows of so many visits, each of which has at least one and `_PAGES` on average."""
    if visits <= 1:
        return 1 + int(math.log(1 - random.random()) / math.log(1 - 1 / _PAGES))
    return max(1, round(random.gauss(visits * _PAGES, math.sqrt(visits * _PAGES * (_PAGES - 1)))))


def _poisson(random: Random, mean: float) -> int:
    if mean > _MANY:
        return max(0, round(random.gauss(mean, math.sqrt(mean))))
    # Knuth: how many uniform numbers until their product is below exp(-mean).
    count, product, least = 0, random.random(), math.exp(-mean)
    while product > least:
        count, product = count + 1, product * random.random()
    return count
