"""The times that events may have, by the hour in which their lines arrived."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from blogdata.contract.partitions import Grain, key_of, start_of
from blogdata.landing.json_lines import EARLIEST
from blogdata.patterns.error_management.late_data_detector import CLOCK_TOLERANCE

IMPOSSIBLE = "impossible_time"
"""Reason of a line whose time is before 2000, or after the end of its arrival hour plus the clock tolerance."""
_HOUR, _INSTANT = timedelta(hours=1), timedelta(microseconds=1)


def hours_of(arrival_hour: str) -> Callable[[datetime], str | None]:
    """Return what gives the hour (`2026-01-31T05`) of a time in UTC; None for an :data:`IMPOSSIBLE` one."""
    begin, key = start_of(arrival_hour, Grain.HOUR), arrival_hour
    end = begin + _HOUR
    latest = end + CLOCK_TOLERANCE

    def hour_of(time: datetime) -> str | None:
        # The hour before is kept: neighbouring lines mostly share theirs.
        nonlocal begin, end, key
        if not begin <= time < end:
            if not EARLIEST <= time <= latest:
                return None
            begin = time.replace(minute=0, second=0, microsecond=0)
            end = min(begin + _HOUR, latest + _INSTANT)
            key = key_of(begin, Grain.HOUR)
        return key

    return hour_of
