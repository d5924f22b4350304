"""Filter Interceptor: every filter has a name, and says how many rows it removed.

Problem: a job that keeps 5 % of its rows looks like one that keeps 95 %; the engine fuses all conditions into
one step and its plan counts them together.
How it works: the filters become one CASE that names the first filter that removes a row (:func:`first_match`). The
rows are counted by that name in the pass that writes them, as any measure of a dataset is, and left out by whoever
reads it. No accumulator, which retried tasks would count twice, and no Python worker.
The trap: a condition that is null removes nothing under CASE, but would remove the row under `WHERE NOT`.
Here only true removes.
When not to use it: for rows that are *wrong*; those are dead letters and keep all their reasons.
Source: "Data Engineering Design Patterns", ch. 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pyspark.sql import Column
from pyspark.sql import functions as F

from patterns.core.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A named reason to leave a row out.

    Args:
        name: What the row's count is reported under.
        removes: Column that is true for a row to leave out; null keeps the row.
    """

    name: str
    removes: Column


@dataclass(frozen=True, kw_only=True)
class JumpReading:
    """How a share compares with its own past.

    Args:
        name: The filter.
        share: Share of rows removed now, 0 to 1.
        expected: Mean of the past shares, or None without a past.
        deviations: Distance from the mean in standard deviations; None without enough past.
        jumped: True when the distance is beyond the bound.
    """

    name: str
    share: float
    expected: float | None
    deviations: float | None
    jumped: bool


def first_match(filters: Sequence[Filter]) -> Column:
    """Build the name of the first filter that removes the row, null when none does.

    Args:
        filters: The filters, in the order they apply; names are unique.

    Raises:
        ConfigurationError: No filter, or two of one name.
    """
    names = [one.name for one in filters]
    if not names or len(set(names)) < len(names):
        raise ConfigurationError(
            what=f"the filters {names} are not a list of distinct names",
            where="filters",
            next_step="pass at least one filter, and give each its own name",
        )
    chain = F.when(filters[0].removes, F.lit(filters[0].name))
    for one in filters[1:]:
        chain = chain.when(one.removes, F.lit(one.name))
    return chain


def jump(
    history: Sequence[Mapping[str, float]],
    now: Mapping[str, float],
    *,
    bound: float = 4.0,
    floor: float = 0.01,
) -> list[JumpReading]:
    """Compare the shares removed now with the shares of past runs.

    Args:
        history: Shares by filter of comparable past runs, any order; fewer than 3 give no judgement.
        now: Shares by filter of this run, 0 to 1.
        bound: Standard deviations from the mean that make a jump.
        floor: Smallest standard deviation taken, so that a steady past does not make every change a jump.

    Returns:
        One reading per filter of this run or of a past one, by name. A filter absent from a run had share 0 there.
    """
    readings = []
    for name in sorted({*now, *(name for shares in history for name in shares)}):
        share = now.get(name, 0.0)
        past = [shares.get(name, 0.0) for shares in history]
        expected = fmean(past) if past else None
        deviations = None
        if expected is not None and len(past) >= 3:
            # Written out: that of the library is exact, and takes a hundred times as long.
            deviation = math.sqrt(math.fsum((one - expected) ** 2 for one in past) / (len(past) - 1))
            deviations = (share - expected) / max(deviation, floor)
        readings.append(
            JumpReading(
                name=name,
                share=share,
                expected=expected,
                deviations=deviations,
                jumped=deviations is not None and not math.fabs(deviations) <= bound,
            )
        )
    return readings
