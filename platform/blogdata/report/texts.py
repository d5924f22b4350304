"""How numbers, times and series are written on the page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import ceil

from markupsafe import Markup

from blogdata.publish.partitions import Grain, start_of

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_WIDTH, _HEIGHT, _MARGIN = 120, 24, 3
UNDEFINED = "–"


def number(value: float | None) -> str:
    """Write a count with thousands separators, a quotient with two decimals."""
    if value is None:
        return UNDEFINED
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def share(value: float | None) -> str:
    """Write a share of 0 to 1 in percent."""
    if value is None:
        return UNDEFINED
    percent = value * 100
    return "<0.1%" if 0 < percent < 0.1 else f"{percent:.1f}%"


def duration(seconds: float | None) -> str:
    """Write seconds as `4.2 s`, `12 s`, `4 m 20 s`, `3 h 5 m` or `2 d 4 h`."""
    if seconds is None:
        return UNDEFINED
    whole = round(seconds)
    if seconds < 10:
        return f"{seconds:.1f} s"
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} m {whole % _MINUTE} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} m"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def figure(value: float | None, unit: str) -> str:
    """Write a number in its unit."""
    if unit == "share":
        return share(value)
    if unit == "seconds":
        return duration(value)
    if unit == "ratio":
        return UNDEFINED if value is None else f"{value:.2f}"
    return number(value)


def change(value: float | None, before: float | None) -> str:
    """Write by how much a number grew, in percent; empty if that is not defined."""
    if value is None or not before:
        return ""
    percent = (value / before - 1) * 100
    if abs(percent) < 0.05:
        return "±0%"
    return (f"{percent:+,.0f}%" if abs(percent) >= 10 else f"{percent:+.1f}%").replace("-", "−")


def shade(value: float | None, top: float) -> str:
    """Name the shade of a number in a table of shades: `s0` for none of the largest one to `s9`; `none` without one."""
    if value is None:
        return "none"
    return f"s{ceil(9 * value / top) if top else 0}"


def moment(text: str) -> str:
    """Write a time in ISO format for people."""
    return f"{datetime.fromisoformat(text):%a %d %b %Y, %H:%M}"


def key(text: str) -> str:
    """Write the key of an hour or a day for people: `Tue 20 Jan 2026, 05:00`."""
    if len(text) > len("2026-01-31"):
        return f"{start_of(text, Grain.HOUR):%a %d %b %Y, %H:%M}"
    return f"{start_of(text, Grain.DAY):%a %d %b %Y}"


def spark(values: Sequence[float | None]) -> Markup:
    """Draw a series as a small line with gaps where a value is missing; it begins at zero if zero is near."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return Markup("")
    low, high = min(known), max(known)
    low = 0.0 if low < high / 2 else low
    step, scale = _WIDTH / (len(values) - 1), (_HEIGHT - 2 * _MARGIN) / ((high - low) or 1.0)
    path, pen, last = "", "M", (0.0, 0.0)
    for index, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        last = (index * step, _HEIGHT - _MARGIN - (value - low) * scale)
        path += f"{pen}{last[0]:.1f} {last[1]:.1f}"
        pen = "L"
    return Markup(
        '<svg class="spark" viewBox="-3 0 {wide} {height}" width="{wide}" height="{height}" aria-hidden="true">'
        '<path d="{path}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="2"/></svg>'
    ).format(wide=_WIDTH + 6, height=_HEIGHT, path=path, x=last[0], y=last[1])
