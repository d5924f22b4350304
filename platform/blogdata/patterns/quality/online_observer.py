"""Online Observer: a dataset is measured by the job that writes it, so measures are published with the data.

Problem: an observer that runs once a day reports at noon that the referral was null in all rows since midnight.
How it works: :func:`observed` adds the share of nulls of each nullable column to a contract's measures, SQL aggregates
that are computed in the same pass as the audits, and stored in the commit. :func:`series` reads them back as a time
series over the partitions, without reading the data, and :func:`jumps` finds the partitions that deviate from the ones
before them, which the dataset's check `measures` reports.
The trap: a measure is not a promise. A null share that doubles must be reported, but must not stop the job; what must
stop it is an audit. An empty partition has no null share: it is absent from the series, not zero. And a share varies
for three normal reasons: the hour and the day of the week; few rows; and rows that come in groups, so that a hundred
carry as little information as some twenty independent ones. This variation is estimated from the share's own history.
When not to use it: for measures that need other datasets, history or much time (distributions, drift); an Offline
Observer computes them outside the hot path.
Source: Data Engineering Design Patterns, ch. 9.
"""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import fmean

from blogdata.contract.contract import LEAST_ROWS, Contract
from blogdata.contract.partitions import Grain
from blogdata.contract.publication import Entry

NULL_SHARE = "null_share"
PAST = 168
"""Number of preceding partitions that a partition is compared with: for hours one week, with each hour of the day."""
LEAST_PAST = 24
"""Minimum number of preceding partitions; with fewer, the usual share is unknown and nothing is judged."""
BOUND = 4.0
"""Distance from the mean, in standard deviations, above which a share is a jump."""
LEAST_DEVIATION = 0.01
"""Lower limit of the standard deviation, so that after a steady history not every change is a jump."""
BEFORE_A_WEEK = 0.05
"""The same limit while the history is shorter than a week: the first weekend may differ from all days before it."""
GROUPS = 4.0
"""Minimum dispersion: variance of a share as a multiple of that of independent rows. A larger one is estimated."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A share of the rows of one partition, 0 to 1; None if there were no rows to measure."""

    partition: str
    value: float | None
    rows: int


@dataclass(frozen=True, kw_only=True)
class Jump:
    """A share, 0 to 1, that deviates from the mean over the preceding partitions."""

    partition: str
    name: str
    found: float
    usual: float


def observed(contract: Contract) -> Contract:
    """Return the contract with `null_share.<column>` (0 to 1) of each nullable column among its measures."""
    shares = {
        f"{NULL_SHARE}.{column.name}": f"avg(cast(`{column.name}` is null as double))"
        for column in contract.columns
        if column.nullable
    }
    return replace(contract, measures={**shares, **contract.measures})


def observed_measures(contract: Contract) -> Sequence[str]:
    return [name for name in contract.measures if name.startswith(f"{NULL_SHARE}.")]


def series(published: Mapping[str, Entry], measure: str) -> Sequence[Point]:
    """Read an observer's measure back as a series: one point per measured partition, by time."""
    return [
        Point(partition=partition, value=entry.measures[measure] if entry.rows_out else None, rows=entry.rows_out)
        for partition, entry in sorted(published.items())
        if measure in entry.measures
    ]


def rates(published: Mapping[str, Entry], reason: str) -> Sequence[Point]:
    """Read the share of rows in that were left out for a reason of the ledger as a series, with the rows in."""
    shares = {key: entry.reasons.get(reason, 0) / entry.rows_in for key, entry in published.items() if entry.rows_in}
    return [Point(partition=key, value=shares.get(key), rows=published[key].rows_in) for key in sorted(published)]


def jumps(name: str, points: Sequence[Point], partitions: Container[str], *, grain: Grain) -> list[Jump]:
    """Compare a share in some partitions with the same share in their preceding partitions.

    Partitions with fewer than `LEAST_ROWS` rows are left out.
    """
    enough = [
        (point.partition, point.value, point.rows)
        for point in sorted(points, key=lambda point: point.partition)
        if point.value is not None and point.rows >= LEAST_ROWS
    ]
    deviating = []
    for place, (partition, share, rows) in enumerate(enough):
        past = [(value, of) for _, value, of in enough[max(place - PAST, 0) : place]]
        if partition not in partitions or len(past) < LEAST_PAST:
            continue
        usual = fmean(value for value, _ in past)
        whole_week = len(past) >= timedelta(weeks=1) / grain.length
        least = LEAST_DEVIATION if whole_week else BEFORE_A_WEEK
        if math.fabs(share - usual) > BOUND * max(least, _deviation(past, usual, share, rows)):
            deviating.append(Jump(partition=partition, name=name, found=share, usual=usual))
    return deviating


def _deviation(past: Sequence[tuple[float, int]], usual: float, share: float, rows: int) -> float:
    """Estimate the standard deviation of a share of so many rows: that of the past or the sampling error, if larger.

    Sampling has the binomial variance times the dispersion, which is Pearson's estimate for overdispersed proportions
    (McCullagh and Nelder, Generalized Linear Models, 4.5).
    """
    squares = [((value - usual) ** 2, of) for value, of in past]
    between = math.fsum(square for square, _ in squares) / (len(past) - 1)
    variance = usual * (1 - usual)
    dispersion = math.fsum(square * of for square, of in squares) / (len(past) - 1) / variance if variance > 0 else 0.0
    sampling = max(dispersion, GROUPS) * max(variance, share * (1 - share)) / rows
    return math.sqrt(max(between, sampling))
