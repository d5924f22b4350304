"""Counts by day from which the page counts any range of days.

Page views of days add up; visitors and visits do not. So each day counts its visitors by how many days before they were
there: those of a range are, on each of its days, those who were not there on an earlier day of the range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.report.daily_rankings import DailyRankings
from assets.report.page_views import DAY, DIMENSIONS, Numbers, PageViews, key_of_hour
from assets.report.ranked_rows import shown
from blogdata.report.elements import ByDay, History

MOST_NAMES, MOST_COUNTS = 300, 20_000
"""Names of a ranking that are counted by day, and counts of all of them; the other names are summed."""


def history(views: PageViews, daily: DailyRankings, apart: Mapping[str, Mapping[str, str]]) -> History:
    """Count the days of the history.

    Args:
        views: The page views.
        daily: Rankings of gold tables.
        apart: Ranking to the names that it does not rank, and what each is shown as.
    """
    begins = views.first // DAY * DAY
    size = views.last // DAY - begins // DAY + 1
    day = (views.hours - begins) // DAY
    visits, alone = _by_gap(views.rows["visit_id"].to_numpy(), day, size)
    visitors, _ = _by_gap(views.rows["user_id"].to_numpy(), day, size)
    private = np.bincount(day, weights=pc.cast(views.rows["private"], pa.int64()).to_numpy(), minlength=size)
    ones = np.ones(len(day), dtype=np.int64)
    rankings = {
        name: _by_day(views.names[name], views.rows[name].to_numpy(), day, ones, size, apart.get(name, {}))
        for name in DIMENSIONS
    }
    first = key_of_hour(begins)[: len("2026-01-31")]
    for name, names, dates, counts in daily.counts():
        texts, codes = _encoded(names)
        keys, of_row = _encoded(dates)
        at = np.array([(date.fromisoformat(key) - date.fromisoformat(first)).days for key in keys])[of_row]
        within = (at >= 0) & (at < size)
        rankings[name] = _by_day(texts, codes[within], at[within], counts[within], size, {})
    return History(
        first=first,
        hours=views.series(begins, views.last, np.arange(begins, views.last + 1)),
        days=views.series(begins, views.last, np.arange(begins, views.last + 1, DAY)),
        visits=visits,
        visitors=visitors,
        bounced=alone,
        private=private.astype(int).tolist(),
        rankings=rankings,
    )


def _encoded(texts: pa.ChunkedArray) -> tuple[list[str], Numbers]:
    """Return the different texts, and for each row the position of its text."""
    # Not by numpy: it would import pandas for texts, which takes longer than all the counting.
    encoded = pc.cast(texts, pa.large_string()).combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


def _by_gap(ids: Numbers, day: Numbers, size: int) -> tuple[list[list[int]], list[list[int]]]:
    """Count ids by day and by how many days before they were there.

    Returns:
        For each day, pairs of days since the day before (0: none) and count, in one list; and for each day, the same of
        ids with one row that day, as triples with the days to the next day (0: none) in the middle.
    """
    pairs, rows = np.unique(ids.astype(np.int64) * size + day, return_counts=True)
    who, at = np.divmod(pairs, size)
    gap = np.where(who[1:] == who[:-1], at[1:] - at[:-1], 0)
    before, after = np.append(0, gap), np.append(gap, 0)
    alone = rows == 1
    return (
        _grouped(at * size + before, size, 1),
        _grouped((at[alone] * size + before[alone]) * size + after[alone], size, 2),
    )


def _grouped(keys: Numbers, size: int, gaps: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(size)]
    values, counts = np.unique(keys, return_counts=True)
    for key, count in zip(values.tolist(), counts.tolist(), strict=True):
        day, rest = divmod(key, size**gaps)
        found[day] += [*divmod(rest, size), count] if gaps == 2 else [rest, count]
    return found


def _by_day(
    names: Sequence[str], codes: Numbers, day: Numbers, counts: Numbers, size: int, apart: Mapping[str, str]
) -> ByDay:
    totals = np.bincount(codes, weights=counts, minlength=len(names))
    most = np.argsort(-totals, kind="stable")[:MOST_NAMES]
    most = most[totals[most] > 0]
    # One row for each name, and a last one for all the others.
    row = np.full(len(names), len(most))
    row[most] = np.arange(len(most))
    sums = np.bincount(row[codes] * size + day, weights=counts, minlength=(len(most) + 1) * size)
    table = sums.astype(np.int64).reshape(-1, size)
    needed = np.cumsum(np.count_nonzero(table[:-1], axis=1))
    listed = int(np.searchsorted(needed, MOST_COUNTS, side="right"))
    shown_as = [apart.get(names[code]) for code in most[:listed].tolist()]
    return ByDay(
        names=[shown(other or names[code]) for other, code in zip(shown_as, most.tolist(), strict=False)],
        counts=[
            np.column_stack((days := np.flatnonzero(line), line[days])).ravel().tolist() for line in table[:listed]
        ],
        apart=[at for at, other in enumerate(shown_as) if other is not None],
        others=table[listed:].sum(axis=0).tolist(),
    )
