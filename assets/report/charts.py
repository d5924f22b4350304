"""Series of page views, visits and visitors by hour, day, week and month."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from assets.report.page_views import DAY, Numbers, PageViews, key_of_hour
from blogdata.report.elements import Chart, ChartLine

LONGEST_BY_HOUR, SHORTEST_BY_WEEK, SHORTEST_BY_MONTH = 28, 29, 32
"""Days up to which a period has a series by hour, and from which on it has those by week and by month."""
COUNTS = {"views": "Page views", "visits": "Visits", "visitors": "Visitors", "new": "New visitors"}
_WEEK = 7 * DAY
_MONDAY = 4 * DAY
"""An hour at which a week begins: 1970-01-01 was a Thursday."""
_DATE = len("2026-01-31")


def charts(views: PageViews, first: int, last: int, compared: tuple[int, int] | None) -> Iterator[Chart]:
    """Draw the series of a period.

    Args:
        views: The page views.
        first: First hour of the period.
        last: Last hour, included.
        compared: First and last hour of the period before, some whole weeks earlier; None: there is none.
    """
    days = last // DAY - first // DAY + 1
    begins = first // DAY * DAY
    if days > 1:
        yield _chart(views, "days", "By day", np.arange(begins, last + 1, DAY), last, compared)
    if days >= SHORTEST_BY_WEEK:
        monday = begins - (begins - _MONDAY) % _WEEK
        weeks = np.maximum(np.arange(monday, last + 1, _WEEK), begins)
        yield _chart(views, "weeks", "By week", weeks, last, compared)
    if days >= SHORTEST_BY_MONTH:
        month = np.array([begins, last], dtype="datetime64[h]").astype("datetime64[M]")
        months = np.arange(month[0], month[1] + 1).astype("datetime64[h]").astype(np.int64)
        # The months of the period before do not begin some whole weeks earlier.
        yield _chart(views, "months", "By month", np.maximum(months, begins), last, None)
    if days <= LONGEST_BY_HOUR:
        yield _chart(views, "hours", "By hour", np.arange(first, last + 1), last, compared)


def _chart(
    views: PageViews, name: str, label: str, starts: Numbers, last: int, compared: tuple[int, int] | None
) -> Chart:
    first = int(starts[0])
    now = views.series(first, last, starts)
    before = {} if compared is None else views.series(*compared, starts - (first - compared[0]))
    keys = [key_of_hour(hour) for hour in starts.tolist()]
    return Chart(
        name=name,
        label=label,
        keys=keys if name == "hours" else [key[:_DATE] for key in keys],
        lines=[
            ChartLine(name=count, label=counted, values=now[count], before=before.get(count, ()))
            for count, counted in COUNTS.items()
        ],
    )
