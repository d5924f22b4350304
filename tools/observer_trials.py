"""Tries the observers on simulated profiles and shares: quiet quarters, and seeded faults of their values.

Rows come in visits whose rows are alike, weekends differ, each day differs a little from the one before, and the blog
grows: that is what a change must be told from.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from random import Random

from blogdata.patterns.quality.drift import QUANTILES, ColumnProfile, Profile, drifts
from blogdata.patterns.quality.jumps import Jump, Point, jumps
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, key_of
from blogdata.publish.schema import Column, Partitioning
from blogdata.simulator.recorded import START, Blog
from tools.detector_trials import FaultKind, Quiet, Trial, recorded

DRIFT, MEASURES = "drift", "measures"
VISITS = Contract(
    dataset="trial.visits",
    description="The profiled dataset of the trials",
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
"""Rows a day of the quiet blogs."""
DAYS = 91
_ALIKE = 4
"""Rows of a visit, which are alike."""
_MOOD = 0.06
"""Relative difference of a share from one day to the next."""
_DRAWN = 1_000
"""Visits drawn one by one; of a larger day so many groups are drawn, which vary more, not less."""
_USUALLY_NULL = 0.2


def profile(
    random: Random, day: int, rows: int, *, browsers: Mapping[str, float] | None = None, slower: float = 1.0
) -> Profile:
    """Simulate the profile of a day.

    Args:
        random: Where the choices come from.
        day: Number of the day; day 0 is a Monday.
        rows: Its rows.
        browsers: Shares of the category's values; None: the usual ones of the weekday.
        slower: Factor of the number's values.
    """
    usual = browsers or (ON_WEEKENDS if day % 7 >= 5 else ON_WEEKDAYS)
    weights = [share * math.exp(random.gauss(0, _MOOD)) for share in usual.values()]
    visits = max(rows // _ALIKE, 1)
    groups = min(visits, _DRAWN)
    drawn = Counter(random.choices(list(usual), weights, k=groups))
    counts = {name: round(count * rows / groups) for name, count in drawn.items()}
    mood = slower * math.exp(random.gauss(0, _MOOD))
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


def null_shares(random: Random, blog: Blog) -> list[Point]:
    """Simulate the share of nulls of a column, hour by hour; a visit has the value in all its rows, or in none."""
    found = []
    for hour in recorded(blog):
        visits = max(round(hour.rows / _ALIKE), 1)
        usual = _USUALLY_NULL * math.exp(random.gauss(0, _MOOD))
        # The sum of so many choices, by its normal approximation.
        share = random.gauss(usual, math.sqrt(usual * (1 - usual) / visits))
        found.append(Point(partition=hour.key, value=min(1.0, max(0.0, share)), rows=hour.rows))
    return found


def quiet_quarters() -> list[Quiet]:
    """Judge a quiet quarter of blogs of every size, and count the alarms."""
    return [Quiet(detector=name, readings=len(found), alarms=sum(found)) for name, found in _quiet()]


def _quiet() -> Iterator[tuple[str, list[bool]]]:
    days = [profiles(Random(f"quiet {rows}"), rows, range(DAYS)) for rows in SIZES]
    yield DRIFT, [bool(drifts(day, one[:at], VISITS)) for one in days for at, day in enumerate(one)]
    judged = []
    for blog in BLOGS:
        points = null_shares(Random(f"quiet {blog.seed}"), blog)
        found = {jump.partition for jump in _jumps(points, {point.partition for point in points})}
        judged += [point.partition in found for point in points]
    yield MEASURES, judged


BLOGS = (Blog(seed=11, rows=40.0), Blog(seed=12, rows=300.0, growth=0.05), Blog(seed=13, rows=4000.0))
"""The blogs whose shares are judged hour by hour."""


def _one_value(random: Random) -> Trial:
    """One value of a category takes nine rows in ten."""
    name = random.choice(list(ON_WEEKDAYS))
    rest = 0.1 / (1 - ON_WEEKDAYS[name])
    return _drifted(random, "browser", {value: share * rest for value, share in ON_WEEKDAYS.items()} | {name: 0.9})


def _larger_number(random: Random) -> Trial:
    """The values of a number are four times as large."""
    return _drifted(random, "lateness", None)


def _drifted(random: Random, column: str, browsers: Mapping[str, float] | None) -> Trial:
    day = random.randrange(30, DAYS)
    before = profiles(random, 4_000, range(day - 29, day))
    broken = profile(random, day, 4_000, browsers=browsers, slower=1.0 if browsers else 4.0)
    found = {drift.column for drift in drifts(broken, before, VISITS)}
    earlier = drifts(before[-1], before[:-1], VISITS)
    return Trial(
        found_after=timedelta() if column in found else None, false_alarms=len(earlier) + len(found - {column})
    )


def _nulls(random: Random) -> Trial:
    """A column is null in 60 to 100 % of the rows instead of in 20 %."""
    blog = random.choice(BLOGS[1:])
    points = [point for point in null_shares(random, blog) if point.rows >= 100]
    place = random.randrange(200, len(points))
    before = points[max(place - 400, 0) : place]
    fault = Point(partition=points[place].partition, value=random.uniform(0.6, 1.0), rows=points[place].rows)
    found = bool(_jumps([*before, fault], {fault.partition}))
    earlier = _jumps(before, {point.partition for point in before[-24:]})
    return Trial(found_after=timedelta() if found else None, false_alarms=len(earlier))


def _jumps(points: list[Point], partitions: set[str]) -> list[Jump]:
    return jumps("null_share.referral", points, partitions, grain=Grain.HOUR)


_NEXT_LOOK = "the next look"
TRIALS: Mapping[FaultKind, Callable[[Random], Trial]] = {
    FaultKind(detector=DRIFT, fault="one value takes 90 % of a day's rows", within=_NEXT_LOOK): _one_value,
    FaultKind(detector=DRIFT, fault="a number is four times as large for a day", within=_NEXT_LOOK): _larger_number,
    FaultKind(
        detector=MEASURES, fault="60 to 100 % nulls in an hour, usual 20 %", within="the hour's publication"
    ): _nulls,
}
"""Each kind of fault and its trial."""
