"""Tomorrow's page views, from complete days only: a day whose figure is too small would make the forecast too small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

SAME_WEEKDAYS, RECENT_DAYS = 4, 7


@dataclass(frozen=True, kw_only=True)
class Views:
    """The page views of a day by the daily report, None without their source, and the share of hours they are of."""

    value: int | None
    completeness: float

    @property
    def whole(self) -> int | None:
        """The figure, if it is that of the whole day."""
        return self.value if self.completeness >= 1 else None


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The forecast of a day's page views.

    Args:
        views: The expected page views; None without a complete day before it.
        method: `weekday`: the mean of up to four same weekdays; `recent`: of up to seven days before; `none`.
    """

    day: str
    views: float | None
    method: str
    days_used: int
    days_left_out: int
    actual: int | None


def forecasts(report: Mapping[str, Views]) -> list[Forecast]:
    """Forecast every reported day but the first, and the one after the last."""
    if not report:
        return []
    first, last = date.fromisoformat(min(report)), date.fromisoformat(max(report))
    return [_of(report, first + timedelta(days=ahead)) for ahead in range(1, (last - first).days + 2)]


def _of(report: Mapping[str, Views], day: date) -> Forecast:
    weekdays = _whole(report, [day - timedelta(weeks=ago) for ago in range(1, SAME_WEEKDAYS + 1)])
    before = [day - timedelta(days=ago) for ago in range(1, RECENT_DAYS + 1)]
    used = weekdays or _whole(report, before)
    left_out = [report[key] for at in before if (key := at.isoformat()) in report and report[key].whole is None]
    own = report.get(day.isoformat())
    return Forecast(
        day=day.isoformat(),
        views=sum(used) / len(used) if used else None,
        method="weekday" if weekdays else "recent" if used else "none",
        days_used=len(used),
        days_left_out=len(left_out),
        actual=None if own is None else own.whole,
    )


def _whole(report: Mapping[str, Views], days: list[date]) -> list[int]:
    found = (report[key].whole for day in days if (key := day.isoformat()) in report)
    return [value for value in found if value is not None]
