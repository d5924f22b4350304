"""Renders the figures as one HTML file: no network, no server, and nothing of the data can become code in it.

Every text is escaped by the template, the figures are embedded as JSON that no parser takes for markup, and the page's
own content security policy lets only the script and the style run whose digests it names.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evidence.finding import Severity

_STATIC = files("report") / "static"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_SPARK_WIDTH, _SPARK_HEIGHT = 120, 24


def render(figures: Mapping[str, Any], *, title: str) -> str:
    """Render the page.

    Args:
        figures: The report as plain JSON values.
        title: Title of the page.

    Returns:
        The whole HTML document.
    """
    style, script = _asset("uPlot.min.css", "page.css"), _asset("uPlot.iife.min.js", "page.js")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    )
    return _environment().get_template("page.html.j2").render(
        title=title,
        policy=policy,
        # Text of the project itself; between these two tags nothing is unescaped by a browser.
        style=Markup(style),
        script=Markup(script),
        licence=_asset("uPlot.LICENSE.txt"),
        figures=figures,
        blog=figures["blog"],
        data=figures["data"],
        critical=sum(one["severity"] == Severity.CRITICAL.value for one in figures["data"]["findings"]),
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=number,
        share=share,
        duration=duration,
        figure=figure,
        change=change,
        moment=moment,
        key=key_text,
        spark=spark,
        segments=segments,
    )
    return environment


def number(value: float | None) -> str:
    """Write a count with thousands separators, a quotient with two decimals."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def share(value: float | None) -> str:
    """Write a share of 0 to 1 in percent."""
    if value is None:
        return "–"
    percent = value * 100
    return "<0.1%" if 0 < percent < 0.1 else f"{percent:.1f}%"


def duration(seconds: float | None) -> str:
    """Write seconds as `12 s`, `4 m 20 s`, `3 h 5 m` or `2 d 4 h`."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, parts in ((_MINUTE, ("s",)), (_HOUR, ("m", "s")), (_DAY, ("h", "m"))):
        if whole < unit:
            break
    else:
        return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"
    if parts == ("s",):
        return f"{whole} s"
    size = _MINUTE if parts == ("m", "s") else _HOUR
    return f"{whole // size} {parts[0]} {whole % size // (1 if size == _MINUTE else _MINUTE)} {parts[1]}"


def figure(value: float | None, unit: str) -> str:
    """Write a number in its unit."""
    if unit == "share":
        return share(value)
    if unit == "seconds":
        return duration(value)
    return "–" if value is None else f"{value:.2f}" if unit == "ratio" else number(value)


def change(value: float | None, before: float | None) -> str:
    """Write by how much a number grew, in percent; empty if that is not defined."""
    if value is None or not before:
        return ""
    percent = (value / before - 1) * 100
    if abs(percent) < 0.05:
        return "±0%"
    return (f"{percent:+.0f}%" if abs(percent) >= 10 else f"{percent:+.1f}%").replace("-", "−")


def moment(text: str | None) -> str:
    """Write a time in ISO format for people, UTC."""
    return "–" if text is None else f"{datetime.fromisoformat(text):%a %d %b %Y, %H:%M}"


def key_text(key: str) -> str:
    """Write a partition key for people: `Tue 20 Jan 2026`, with the hour if it has one."""
    day = f"{datetime.strptime(key[:10], '%Y-%m-%d'):%a %d %b %Y}"
    return f"{day}, {key[11:13]}:00" if len(key) > 10 else day


def spark(values: Sequence[float | None]) -> Markup:
    """Draw a series as a small line, from zero if it is near; gaps where a value is missing."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return Markup("")
    low, high = min(known), max(known)
    low = 0.0 if low < high / 2 else low
    span = (high - low) or 1.0
    step = _SPARK_WIDTH / max(len(values) - 1, 1)
    points = [
        None if value is None else f"{index * step:.1f} {_SPARK_HEIGHT - 3 - (value - low) / span * (_SPARK_HEIGHT - 6):.1f}"
        for index, value in enumerate(values)
    ]
    path = "".join(
        "" if point is None else f"{'M' if index == 0 or points[index - 1] is None else 'L'}{point}"
        for index, point in enumerate(points)
    )
    end = next((point for point in reversed(points) if point is not None), "0 0").split()
    return Markup(
        '<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}" aria-hidden="true">'
        '<path d="{path}"/><circle cx="{x}" cy="{y}" r="2"/></svg>'
    ).format(width=_SPARK_WIDTH, height=_SPARK_HEIGHT, path=path, x=end[0], y=end[1])


def segments(dataset: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Cut the rows in of a dataset into rows out and each reason, as shares of a bar 100 wide."""
    parts = [("rows out", max(dataset["rows_out"], 0)), *dataset["reasons"].items()]
    # What a dataset holds beyond its rows in, such as rows it keeps, has a negative count and no place in the bar.
    total = sum(rows for _, rows in parts if rows > 0)
    return list(_placed(parts, total)) if total else []


def _placed(parts: Sequence[tuple[str, int]], total: int) -> Iterator[dict[str, Any]]:
    begins = 0.0
    for index, (name, rows) in enumerate(parts):
        if rows > 0:
            width = rows / total * 100
            yield {"name": name, "rows": rows, "x": round(begins, 3), "width": round(width, 3), "index": index}
            begins += width


def _asset(*names: str) -> str:
    return "\n".join((_STATIC / name).read_text(encoding="utf-8").strip() for name in names)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
