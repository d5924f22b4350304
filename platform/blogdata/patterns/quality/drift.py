"""Compares the distribution of a column in one period with those of comparable periods before it.

A distribution differs between periods for three normal reasons: the day of the week, few rows, and rows of one session,
which are alike. So a difference counts only if it is larger than a conventional limit, larger than what sampling
explains, and larger than what the earlier periods differ from each other.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import fmean, pstdev

from blogdata.publish.contract import LEAST_ROWS, Contract
from blogdata.publish.partitions import Grain, key_of, start_of

QUANTILES = tuple(step / 20 for step in range(21))
"""Probabilities of the quantiles kept of a numeric column."""
STABLE = 0.25
"""Population stability index above which a population has shifted, by convention (Siddiqi, Credit Risk Scorecards)."""
DISTANCE = 0.2
"""Kolmogorov-Smirnov distance, 0 to 1, above which a numeric distribution has shifted."""
BEFORE_WEEKDAYS = 2.0
"""Factor of both limits while there are not enough periods of the same weekday: the first weekend may differ."""
COMPARED = 4
"""Number of periods that a period is compared with, at most: the same weekday of so many weeks."""
LEAST_COMPARED = 3
"""Number of periods below which nothing is judged."""
ALIKE = 4.0
"""Rows that carry as little information as one independent row: those of one session are alike."""
UNLIKELY = 0.9999
"""Quantile of what sampling explains."""
SPREAD = 4.0
"""How many standard deviations above the mean difference between earlier periods a difference is unusual."""
_NUMERIC = ("BIGINT", "INT", "SMALLINT", "DOUBLE", "FLOAT", "DECIMAL")


@dataclass(frozen=True, kw_only=True)
class ColumnProfile:
    """One column in one period.

    Args:
        counts: Most frequent values to their rows, approximate; `…` counts all others. Empty for a number.
        quantiles: Values at :data:`QUANTILES`; empty for a category.
    """

    null_share: float
    distinct: int
    counts: Mapping[str, int] = field(default_factory=dict)
    quantiles: Sequence[float] = ()


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One period of a dataset, as one look found it."""

    period: str
    version: int
    rows: int
    columns: Mapping[str, ColumnProfile]


@dataclass(frozen=True, kw_only=True)
class Drift:
    """A column whose distribution differs from what was usual."""

    period: str
    column: str
    test: str
    found: float
    limit: float


def is_number(contract: Contract, name: str) -> bool:
    """Return whether a column is numeric; all others are categories."""
    return next(column.type for column in contract.columns if column.name == name).upper().startswith(_NUMERIC)


def drifts(new: Profile, earlier: Sequence[Profile], contract: Contract) -> list[Drift]:
    """Compare the distributions of a period with those of comparable periods before it.

    Returns:
        The columns that differ more than sampling and the past explain; none if there are too few rows or periods.
    """
    past = [one for one in comparable(new, earlier, contract.grain) if one.rows >= LEAST_ROWS]
    if new.rows < LEAST_ROWS or len(past) < LEAST_COMPARED:
        return []
    factor = 1.0 if _are_same_weekdays(new, past, contract.grain) else BEFORE_WEEKDAYS
    found = []
    for name in contract.profiled:
        number = is_number(contract, name)
        test, least, difference = _NUMBERS if number else _CATEGORIES
        here = difference(new, past, name)
        if here is None:
            continue
        others = [(one, [other for other in past if other is not one]) for one in past]
        among = [apart for one, rest in others if (apart := difference(one, rest, name)) is not None]
        limit = max(
            factor * least,
            _by_sampling(new, past, name, number=number),
            fmean(among) + SPREAD * pstdev(among) if among else 0.0,
        )
        if here > limit:
            found.append(Drift(period=new.period, column=name, test=test, found=here, limit=limit))
    return found


def _are_same_weekdays(new: Profile, past: Sequence[Profile], grain: Grain | None) -> bool:
    if grain is None or grain is Grain.WEEK:
        return True
    weekday = start_of(new.period, Grain.DAY).weekday()
    return all(start_of(one.period, Grain.DAY).weekday() == weekday for one in past)


def comparable(new: Profile, earlier: Iterable[Profile], grain: Grain | None) -> list[Profile]:
    """Choose the periods that a period is compared with: the same weekdays before it, or else the newest days."""
    newest: dict[str, Profile] = {}
    for one in sorted(earlier, key=lambda one: one.version):
        if one.period < new.period or grain is None:
            newest[one.period if grain is not None else str(one.version)] = one
    if grain is None or grain is Grain.WEEK:
        return [newest[key] for key in sorted(newest)[-COMPARED:]]
    start = start_of(new.period, Grain.DAY)
    weekdays = [key_of(start - timedelta(weeks=back), Grain.DAY) for back in range(1, COMPARED + 1)]
    same = [newest[key] for key in weekdays if key in newest]
    if len(same) >= LEAST_COMPARED:
        return same
    return [newest[key] for key in sorted(newest)[-7:]]


def _stability(new: Profile, past: Sequence[Profile], name: str) -> float | None:
    """Return the population stability index between a period and others taken together; None if one has no rows."""
    usual = pooled(past, name)
    here = dict(new.columns[name].counts) if name in new.columns else {}
    if not usual or not here:
        return None
    values = usual.keys() | here.keys()
    # Half a row each, so that a value seen on one side only is compared, too.
    rows, expected_rows = (sum(counts.values()) + 0.5 * len(values) for counts in (here, usual))
    index = 0.0
    for value in values:
        found, expected = (here.get(value, 0) + 0.5) / rows, (usual.get(value, 0) + 0.5) / expected_rows
        index += (found - expected) * math.log(found / expected)
    return index


def pooled(past: Sequence[Profile], name: str) -> dict[str, int]:
    """Add up the counts of a category's values over periods; empty if none has any."""
    pooled: dict[str, int] = {}
    for one in past:
        for value, rows in (one.columns[name].counts if name in one.columns else {}).items():
            pooled[value] = pooled.get(value, 0) + rows
    return pooled


def _distance(new: Profile, past: Sequence[Profile], name: str) -> float | None:
    """Return the largest distance between the distribution function of a period and the mean one of others."""
    here = new.columns[name].quantiles if name in new.columns else ()
    usual = [one.columns[name].quantiles for one in past if name in one.columns and one.columns[name].quantiles]
    if not here or not usual:
        return None
    points = sorted({*here, *(value for quantiles in usual for value in quantiles)})
    return max(abs(_share_below(here, at) - fmean(_share_below(each, at) for each in usual)) for at in points)


def _share_below(quantiles: Sequence[float], value: float) -> float:
    place = bisect_right(quantiles, value)
    return QUANTILES[place - 1] if place else 0.0


_CATEGORIES = ("population stability index", STABLE, _stability)
_NUMBERS = ("Kolmogorov-Smirnov distance", DISTANCE, _distance)


def _by_sampling(new: Profile, past: Sequence[Profile], name: str, *, number: bool) -> float:
    """Return the difference that sampling alone explains, for so many rows of which groups are alike."""
    from scipy.stats import chi2, kstwobign

    here, before = new.rows / ALIKE, sum(one.rows for one in past) / ALIKE
    apart = 1 / here + 1 / before
    if number:
        # The quantiles are 1/20 apart.
        return float(kstwobign.ppf(UNLIKELY)) * math.sqrt(apart) + 1 / (len(QUANTILES) - 1)
    values = len(pooled([new, *past], name))
    # The index is about a chi-squared statistic times the sum of the inverse sample sizes.
    return float(chi2.ppf(UNLIKELY, max(values - 1, 1))) * apart
