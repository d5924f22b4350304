"""Finds the partitions in which a share of the rows (e.g. of nulls) deviates from its own history: anomaly detection.

A share varies between partitions for three normal reasons: the hour and the day of the week; small samples in
partitions with few rows; and grouped rows (a value that a session lacks is missing in all its rows), so that a hundred
rows carry as little information as some twenty independent ones. The size of this variation is estimated from the
history of the same share. A jump is a distance from the mean that is large compared with all three.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import fmean

from blogdata.publish.contract import LEAST_ROWS
from blogdata.publish.partitions import Grain

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
    """A share of the rows of one partition, or another measure of them; None if there were no rows to measure."""

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


def jumps(
    name: str, points: Sequence[Point], partitions: Container[str], *, grain: Grain, max_row_ratio: float = math.inf
) -> list[Jump]:
    """Compare a share in some partitions with the same share in their preceding partitions.

    Args:
        points: Shares, 0 to 1, of these partitions and of preceding ones; those with fewer than `LEAST_ROWS` rows are
            left out.
        max_row_ratio: Maximum ratio between the row counts of two comparable partitions, either way; others are not
            compared.
    """
    enough = [
        (point.partition, point.value, point.rows)
        for point in sorted(points, key=lambda point: point.partition)
        if point.value is not None and point.rows >= LEAST_ROWS
    ]
    found = []
    for place, (partition, share, rows) in enumerate(enough):
        if partition not in partitions:
            continue
        before = enough[max(place - PAST, 0) : place]
        past = [(value, of) for _, value, of in before if rows / max_row_ratio <= of <= rows * max_row_ratio]
        if len(past) < LEAST_PAST:
            continue
        usual = fmean(value for value, _ in past)
        whole_week = len(before) >= timedelta(weeks=1) / grain.length
        least = LEAST_DEVIATION if whole_week else BEFORE_A_WEEK
        if math.fabs(share - usual) > BOUND * max(least, _deviation(past, usual, share, rows)):
            found.append(Jump(partition=partition, name=name, found=share, usual=usual))
    return found


def _deviation(past: Sequence[tuple[float, int]], usual: float, share: float, rows: int) -> float:
    """Estimate the standard deviation of a share of so many rows: that of the past or the sampling error, if larger.

    The variance of sampling is the binomial one of the usual or the found share, whichever is larger, times the
    dispersion: the mean of the past's squared distances, each in units of its own binomial variance (Pearson's estimate
    for overdispersed proportions, McCullagh and Nelder, Generalized Linear Models, 4.5).
    """
    squares = [((value - usual) ** 2, of) for value, of in past]
    between = math.fsum(square for square, _ in squares) / (len(past) - 1)
    variance = usual * (1 - usual)
    dispersion = math.fsum(square * of for square, of in squares) / (len(past) - 1) / variance if variance > 0 else 0.0
    sampling = max(dispersion, GROUPS) * max(variance, share * (1 - share)) / rows
    return math.sqrt(max(between, sampling))
