"""The measures that commits carry, as series over the days, each with its usual value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from blogdata.lake.commit import Entry
from blogdata.patterns.quality.online_observer import DISTINCT, NULL_SHARE
from blogdata.publish.contract import Contract

_DAY = len("2026-01-31")
_EARLIER = 28
"""Days before the newest one whose median is the usual value."""


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A measure of a dataset by day.

    Args:
        dataset: Name as `layer.table`.
        measure: Its name in the contract.
        is_share: Whether the values are shares, 0 to 1: means over the rows of a day. Others are sums over a day.
        days: The days, in order; a week is its Monday.
        values: One value a day; None where there were no rows.
        newest: Value of the newest day.
        usual: Median of the days before, at most 28; None without any.
    """

    dataset: str
    measure: str
    is_share: bool
    days: Sequence[str]
    values: Sequence[float | None]
    newest: float | None
    usual: float | None


def trends(contract: Contract, published: Mapping[str, Entry], *, days: int) -> Iterator[Trend]:
    """Read the measures of a partitioned dataset as series.

    Measures that are neither shares nor counts, such as a newest time, have no series; neither have counts of
    distinct values, because those of hours do not add up to that of a day: they are divided by the rows.

    Args:
        contract: Its contract.
        published: Newest publication of each partition.
        days: How many of the newest days.
    """
    if contract.partitioning is None:
        return
    by_day: dict[str, list[Entry]] = {}
    for key, entry in sorted(published.items()):
        by_day.setdefault(key[:_DAY], []).append(entry)
    newest = sorted(by_day)[-days:]
    for measure in contract.measures:
        if contract.measures[measure].startswith("max("):
            continue
        is_share = measure.startswith((f"{NULL_SHARE}.", f"{DISTINCT}."))
        values = [_of_day(measure, by_day[day], is_share=is_share) for day in newest]
        known = [value for value in values[-_EARLIER - 1 : -1] if value is not None]
        if any(value is not None for value in values):
            yield Trend(
                dataset=contract.dataset,
                measure=measure,
                is_share=is_share,
                days=newest,
                values=values,
                newest=values[-1],
                usual=median(known) if known else None,
            )


def _of_day(measure: str, entries: Sequence[Entry], *, is_share: bool) -> float | None:
    found = [(entry.measures[measure], entry.rows_out) for entry in entries if measure in entry.measures]
    numbers = [(float(value), rows) for value, rows in found if isinstance(value, int | float)]
    if not is_share:
        return sum(value for value, _ in numbers) if numbers else None
    rows = sum(rows for _, rows in numbers)
    if not rows:
        return None
    if measure.startswith(f"{DISTINCT}."):
        return sum(min(value, rows) for value, rows in numbers) / rows
    return sum(value * rows for value, rows in numbers) / rows
