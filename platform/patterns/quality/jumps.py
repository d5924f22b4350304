"""Finds the partitions in which a share of the rows has left its own history.

A share differs from partition to partition without being news: with the hour and the day of the week; because few rows
are a small sample; and because rows come in groups (what one session lacks, all its rows lack), so that a hundred rows
tell as little as some twenty independent ones. How much, the history of the same share says. A jump is a distance from
its mean that is large against all three.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import fmean

from publish.contract import LEAST_ROWS
from publish.partitions import Grain

PAST = 168
"""Partitions before it that a partition is compared with: a week of hours, each of the day among them."""
LEAST_PAST = 24
"""Of fewer partitions before it nothing is known of what is usual."""
BOUND = 4.0
"""Standard deviations from the mean that are a jump."""
LEAST_DEVIATION = 0.01
"""Smallest standard deviation taken: a steady history does not make every change a jump."""
BEFORE_A_WEEK = 0.05
"""The same, before there is a week to compare with: the first weekend may well differ from all days before it."""
GROUPS = 4.0
"""How many times the variance of independent rows a share has at least; a history that varies more shows its own."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A share of the rows of one partition, or another measure of them.

    Args:
        partition: Key of the partition.
        value: The measure; None when there were no rows to measure.
        rows: Rows it is taken of.
    """

    partition: str
    value: float | None
    rows: int


@dataclass(frozen=True, kw_only=True)
class Jump:
    """A share that has left its own history.

    Args:
        partition: Where it was found.
        name: Of the share.
        found: The share, 0 to 1.
        usual: Its mean over the partitions before.
    """

    partition: str
    name: str
    found: float
    usual: float


def jumps(
    name: str, points: Sequence[Point], partitions: Container[str], *, grain: Grain, alike: float = math.inf
) -> list[Jump]:
    """Compare a share in some partitions with the same share in the partitions before each of them.

    Args:
        name: Of the share.
        points: Shares, 0 to 1, of these partitions and of those before them; those of few rows are left out.
        partitions: Those to judge.
        grain: Length of a partition.
        alike: Only partitions with at most so many times as many rows, or as few, are comparable.

    Returns:
        The jumps, in the order of time.
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
        past = [(value, of) for _, value, of in before if rows / alike <= of <= rows * alike]
        if len(past) < LEAST_PAST:
            continue
        usual = fmean(value for value, _ in past)
        whole_week = len(before) >= timedelta(weeks=1) / grain.length
        least = LEAST_DEVIATION if whole_week else BEFORE_A_WEEK
        if math.fabs(share - usual) > BOUND * max(least, _deviation(past, usual, share, rows)):
            found.append(Jump(partition=partition, name=name, found=share, usual=usual))
    return found


def _deviation(past: Sequence[tuple[float, int]], usual: float, share: float, rows: int) -> float:
    """Give the standard deviation to expect of a share of so many rows: that of the past, or its sampling error.

    The sampling error is the binomial one of the usual or the found share, whichever is larger, times the dispersion:
    the mean of the past's squared distances in units of each one's own binomial variance (Pearson's estimate for
    overdispersed proportions, McCullagh and Nelder, Generalized Linear Models, 4.5).
    """
    squares = [((value - usual) ** 2, of) for value, of in past]
    between = math.fsum(square for square, _ in squares) / (len(past) - 1)
    variance = usual * (1 - usual)
    dispersion = math.fsum(square * of for square, of in squares) / (len(past) - 1) / variance if variance > 0 else 0.0
    sampling = max(dispersion, GROUPS) * max(variance, share * (1 - share)) / rows
    return math.sqrt(max(between, sampling))
