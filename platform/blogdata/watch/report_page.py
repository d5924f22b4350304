"""Renders the figures as one HTML file: no network, no server, and nothing of the data can become code in it.

Every text is escaped by the template, and the page's own content security policy lets only the script and the style
run whose digests it names. What the page says about the blog is plain data, for JSON alike.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from blogdata.contract.partitions import Grain, start_of
from blogdata.errors.finding import Severity

FILE = "report.html"
SHOWN = 25
LONGEST_NAME = 200


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number with its definition. `before` is that of the period before; None where a number is not defined.

    Its unit is `count`, `share` (0 to 1, written in percent), `seconds` or `ratio` (a quotient of counts).
    """

    name: str
    label: str
    value: float | None
    before: float | None
    definition: str
    unit: str = "count"


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Counts by hour or by day: keys like `2026-01-31T05` or `2026-01-31`, and a number a key of each line."""

    name: str
    keys: Sequence[str]
    lines: Mapping[str, Sequence[int]]


@dataclass(frozen=True, kw_only=True)
class RankedRow:
    """One row of a ranking: its page views, visits and visitors, and its share of all page views, 0 to 1."""

    name: str
    values: Sequence[int]
    share: float


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Rows by page views, most first; `of` says what a row is, and `others` how many more there are.

    `apart` has what counts in the shares and is not ranked, such as the blog itself among the referrers.
    """

    name: str
    label: str
    of: str
    rows: Sequence[RankedRow]
    apart: Sequence[RankedRow]
    others: int


def ranking(
    name: str, label: str, of: str, counted: Iterable[tuple[str, Sequence[int]]], apart: Mapping[str, str]
) -> Ranking:
    """Order what was counted by name; `apart` has the names that are not ranked, and what each is shown as."""
    every = sorted(counted, key=lambda row: (-row[1][0], row[0]))
    total = sum(numbers[0] for _, numbers in every) or 1
    rows = {
        key: RankedRow(name=printable(apart.get(key, key)), values=numbers, share=numbers[0] / total)
        for key, numbers in every
    }
    ranked = [row for key, row in rows.items() if key not in apart]
    return Ranking(
        name=name,
        label=label,
        of=of,
        rows=ranked[:SHOWN],
        apart=[row for key, row in rows.items() if key in apart],
        others=max(0, len(ranked) - SHOWN),
    )


@dataclass(frozen=True, kw_only=True)
class ReportPeriod:
    """A period that a reader can choose: its first and last hour, and those of the period it is compared with."""

    name: str
    label: str
    first: str
    last: str
    compared: tuple[str, str] | None
    figures: Sequence[Figure]
    chart: Chart
    rankings: Sequence[Ranking]


@dataclass(frozen=True, kw_only=True)
class Audience:
    """Who read what: the first and last hour of the history, and the periods, of which `chosen` is shown first."""

    since: str
    until: str
    chosen: str
    periods: Sequence[ReportPeriod]
    notes: Sequence[str]


def printable(name: str) -> str:
    """Cut a name, and mark what does not print: the name is whatever a visitor or a browser has sent."""
    cut = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in cut)


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
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, length, below, part in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if whole >= length:
            return f"{whole // length} {unit} {whole % length // part} {below}"
    return f"{whole} s"


def figure(value: float | None, unit: str) -> str:
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


def moment(text: str) -> str:
    return f"{datetime.fromisoformat(text):%a %d %b %Y, %H:%M}"


def key(text: str) -> str:
    """Write the key of an hour or a day for people: `Tue 20 Jan 2026, 05:00`."""
    if len(text) > len("2026-01-31"):
        return f"{start_of(text, Grain.HOUR):%a %d %b %Y, %H:%M}"
    return f"{start_of(text, Grain.DAY):%a %d %b %Y}"


_STATIC = files("blogdata.watch") / "static"


def render(figures: Mapping[str, Any], *, title: str) -> str:
    """Render the report, given as plain JSON values, as a whole HTML document."""
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    )
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            policy=policy,
            # Text of the project itself; between these two tags nothing is unescaped by a browser.
            style=Markup(style),
            script=Markup(script),
            made_at=figures["made_at"],
            blog=figures["blog"],
            data=figures["data"],
            critical=sum(finding["severity"] == Severity.CRITICAL.value for finding in figures["data"]["findings"]),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("blogdata.watch"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({rule.__name__: rule for rule in (number, share, figure, change, moment, key)})
    return environment


def _asset(name: str) -> str:
    return (_STATIC / name).read_text(encoding="utf-8").strip()


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
