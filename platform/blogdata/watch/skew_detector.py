"""Skew Detector: notices partitions with far fewer or more rows than comparable ones, and keys that take too many.

Problem: a job succeeds on half of its input, and reports show a drop that never happened; or one key takes half of the
rows, and one task works while the others wait.
How it works: :func:`volumes` compares the rows of a partition with the median of comparable ones: the same hour of the
same weekday in the last eight weeks (while these are few, the same hour of the last two weeks, with a wider tolerance),
each scaled by the growth since. A partition is skewed if its rows lie outside the tolerance by more than chance
explains, and far from its comparable ones for their own spread. :func:`unevenness` compares the relative deviation of
the rows of keys, standard deviation by mean, with that of earlier partitions.
The trap: the fatality loop. If a bad partition becomes the norm, the next good one is reported. Refused and failed runs
publish nothing, so they are no history, and medians do not move with single bad partitions. The other trap is small
numbers: a hundred rows of some twenty visitors vary by chance, so what chance explains is computed for rows that come
in groups.
When not to use it: for a known event such as a sale, which is an unusual volume and no fault.
Source: Data Engineering Design Patterns, ch. 10.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from statistics import median

from blogdata.contract.contract import LEAST_ROWS
from blogdata.contract.partitions import Grain, key_of, start_of
from blogdata.contract.watch import Skew
from blogdata.errors.remedies import Remedy, ShowLedger
from blogdata.watch.reading import SKEW, Reading, first, unknown

FEWER = "fewer rows"
MORE = "more rows"
UNEVEN = "uneven keys"
BOUND = 3.0
"""Distance, in standard deviations, that is no accident: from comparable partitions, and from the tolerated rows."""
GROUPS = 8.0
"""Variance of a row count as a multiple of that of independent rows: a visitor brings several."""
WEEKS = 8
"""How many weeks back partitions are compared."""
LEAST_ALIKE = 3
"""Comparable partitions below which the expected volume is unknown."""
DAYS = 14
"""How many days back the same hour is compared while there are too few weeks."""
LEAST_DAYS = 7
"""Days below which the expected volume of an hour of the day is unknown."""
TIMES_USUAL = 2.0
"""Relative deviation of keys, as a multiple of the usual one, above which they are uneven."""
LEAST_UNEVEN = 0.5
"""Relative deviation of keys below which they are even enough for any purpose."""


GROWTH = {Grain.HOUR: timedelta(weeks=2), Grain.DAY: timedelta(weeks=2), Grain.WEEK: timedelta(weeks=8)}
"""The time before a partition by which growth is measured; an outage of less than half of it does not change it."""


@dataclass(frozen=True, kw_only=True)
class Deviation:
    partition: str
    verdict: str
    value: float
    usual: float

    @property
    def ratio(self) -> float:
        """How far apart the two are: the larger one divided by the smaller one."""
        small, large = sorted((self.value, self.usual))
        return large / small if small > 0 else math.inf if large > 0 else 1.0

    def __str__(self) -> str:
        if self.verdict == UNEVEN:
            return f"{self.partition}: keys deviate by {self.value:.2f} of their mean, usual are {self.usual:.2f}"
        return f"{self.partition} has {self.value:,.0f} rows, {self.usual:,.0f} were expected"


def volumes(rows: Mapping[str, int], partitions: Collection[str], *, grain: Grain, tolerance: float) -> list[Deviation]:
    """Compare the rows of partitions with those of comparable earlier ones; none whose expected volume is unknown."""
    past = _Past(rows, grain, tolerance)
    deviations = []
    for partition in sorted(set(partitions) & rows.keys()):
        alike = past.alike(partition)
        if alike is None:
            continue
        others, share = alike
        usual, here = median(others), rows[partition]
        # 1.4826 makes the median of distances an estimate of the standard deviation (of a normal distribution).
        spread = 1.4826 * median(abs(count - usual) for count in others)
        least, most = usual * share, usual / share
        verdict = ""
        if max(usual, here) >= LEAST_ROWS and abs(here - usual) > BOUND * spread:
            if here + BOUND * _by_chance(least) < least:
                verdict = FEWER
            elif here - BOUND * _by_chance(here) > most:
                verdict = MORE
        deviations.append(Deviation(partition=partition, verdict=verdict, value=here, usual=usual))
    return deviations


def unevenness(counts: Mapping[str, Sequence[int]], partitions: Collection[str]) -> list[Deviation]:
    """Compare the relative deviation of keys with the usual one, of partitions with enough rows and a history."""
    keys = max((len(rows) for rows in counts.values()), default=0)
    measured = {
        partition: _relative_deviation(rows, keys) for partition, rows in counts.items() if sum(rows) >= LEAST_ROWS
    }
    ordered, deviations = sorted(measured), []
    for place, partition in enumerate(ordered):
        before = [measured[key] for key in ordered[max(place - DAYS * 24, 0) : place]]
        if partition not in partitions or len(before) < LEAST_DAYS:
            continue
        by_chance = math.sqrt(GROUPS * keys / sum(counts[partition]))
        usual = max(median(before), by_chance, LEAST_UNEVEN / TIMES_USUAL)
        uneven = measured[partition] > TIMES_USUAL * usual
        deviations.append(
            Deviation(partition=partition, verdict=UNEVEN if uneven else "", value=measured[partition], usual=usual)
        )
    return deviations


def detect(dataset: str, spec: Skew, deviations: Sequence[Deviation]) -> Reading:
    """Return the reading of the partition that deviates most; unknown if nothing could be judged."""
    if not deviations:
        return unknown(SKEW, dataset, "too few comparable partitions, or too few rows")
    bound = TIMES_USUAL if spec.tolerance is None else 1 / (1 - spec.tolerance)
    skewed = [deviation for deviation in deviations if deviation.verdict]
    if not skewed:
        largest = max(deviation.ratio for deviation in deviations)
        return Reading(detector=SKEW, dataset=dataset, value=largest, bound=bound)
    worst = max(skewed, key=lambda deviation: deviation.ratio)
    partitions = sorted({deviation.partition for deviation in skewed})
    others = "" if len(partitions) == 1 else f"; {len(partitions)} partitions: {first(partitions)}"
    return Reading(
        detector=SKEW,
        dataset=dataset,
        value=worst.ratio,
        bound=bound,
        verdict=worst.verdict,
        what=f"{worst}{others}",
        remedy=Remedy("see whether the layer above has them too: ", ShowLedger(dataset=dataset)),
        partitions=partitions,
        figures={"found": worst.value, "usual": worst.usual},
    )


class _Past:
    def __init__(self, rows: Mapping[str, int], grain: Grain, tolerance: float) -> None:
        self._rows = rows
        self._grain = grain
        self._share = 1 - tolerance
        self._by_day: dict[str, dict[str, int]] = {}
        for key, count in rows.items():
            self._by_day.setdefault(key[:10], {})[key[10:]] = count
        self._growth = lru_cache(maxsize=None)(self._median_ratio)

    def alike(self, partition: str) -> tuple[list[float], float] | None:
        """Return comparable partitions' rows, scaled by the growth since, and the least share of them that is usual."""
        start = start_of(partition, self._grain)
        weeks = self._scaled(start, [timedelta(weeks=week) for week in range(1, WEEKS + 1)])
        if len(weeks) >= LEAST_ALIKE:
            return weeks, self._share
        if self._grain is Grain.WEEK:
            return None
        days = self._scaled(start, [timedelta(days=day) for day in range(1, DAYS + 1)])
        # Other weekdays may have half of the rows, and a holiday among them half of that.
        return (days, self._share**2) if len(days) >= LEAST_DAYS else None

    def _scaled(self, start: datetime, back: Sequence[timedelta]) -> list[float]:
        keys = ((ago, key_of(start - ago, self._grain)) for ago in back)
        return [self._rows[key] * self._growth(start.date(), ago) for ago, key in keys if key in self._rows]

    def _median_ratio(self, day: date, ago: timedelta) -> float:
        """Return the median ratio of the partitions before a day to those some time before them; 1 if half lack."""
        count = GROWTH[self._grain].days
        ratios = []
        for back in range(1, count + 1):
            before = day - timedelta(days=back)
            then = self._by_day.get((before - ago).isoformat(), {})
            for hour, rows in self._by_day.get(before.isoformat(), {}).items():
                if then.get(hour):
                    ratios.append(rows / then[hour])
        return median(ratios) if len(ratios) > GROWTH[self._grain] / self._grain.length / 2 else 1.0


def _by_chance(rows: float) -> float:
    """Return the standard deviation of a count of grouped rows."""
    return math.sqrt(GROUPS * rows)


def _relative_deviation(counts: Sequence[int], keys: int) -> float:
    mean = sum(counts) / keys
    # Keys without rows have no count.
    squares = math.fsum((count - mean) ** 2 for count in counts) + (keys - len(counts)) * mean**2
    return math.sqrt(squares / keys) / mean
