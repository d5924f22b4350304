"""What a page consists of: figures, charts and tables as plain data, for the HTML page and for JSON alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from errors.remedies import Remedy


class Unit(str, Enum):
    """How a figure is written."""

    COUNT = "count"
    SHARE = "share"
    """0 to 1, written in percent."""
    SECONDS = "seconds"
    RATIO = "ratio"
    """A quotient of counts, such as page views a visit."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number with its definition, beside the same number of an earlier period.

    Args:
        name: Its name in JSON.
        label: Its name on the page.
        value: The number; None: not defined for this period, like the share of nothing.
        before: The same number of the period before; None: not known.
        definition: What is counted, in one sentence.
        unit: How it is written.
        better: Whether growth is good news, 1, bad news, -1, or neither, 0.
    """

    name: str
    label: str
    value: float | None
    before: float | None
    definition: str
    unit: Unit = Unit.COUNT
    better: int = 0


@dataclass(frozen=True, kw_only=True)
class Line:
    """One series of a chart.

    Args:
        name: Its name in JSON.
        label: Its name on the page.
        values: One number a key of the chart.
        before: The same of the period before, key by key; empty: not known.
    """

    name: str
    label: str
    values: Sequence[float | None]
    before: Sequence[float | None] = ()


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Series over hours or days.

    Args:
        name: Its name in JSON.
        label: Its title on the page.
        keys: Hours like `2026-01-31T05` or days like `2026-01-31`, in order.
        lines: The series; the page shows one of them at a time.
    """

    name: str
    label: str
    keys: Sequence[str]
    lines: Sequence[Line]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Numbers by two dimensions, shown as shades.

    Args:
        label: Its title.
        rows: Names of the rows.
        columns: Names of the columns.
        values: One list of numbers a row; None: there is nothing to count.
    """

    label: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float | None]]


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """The largest of many, with what each counts.

    Args:
        name: Its name in JSON.
        label: Its title on the page.
        of: What one row is, such as `page`.
        columns: Names of the numbers; the first one orders the rows.
        rows: The name of each and its numbers; `before` is the first number in the period before.
        others: How many more there are.
        monospaced: Whether the names are paths and the like.
    """

    name: str
    label: str
    of: str
    columns: Sequence[str]
    rows: Sequence[RankedRow]
    others: int = 0
    monospaced: bool = False


@dataclass(frozen=True, kw_only=True)
class RankedRow:
    """One row of a ranking.

    Args:
        name: What is counted.
        values: Its numbers, in the order of the ranking's columns.
        share: Its share of the first number over all rows, 0 to 1.
        before: The first number in the period before; None: not known.
    """

    name: str
    values: Sequence[int]
    share: float
    before: int | None


@dataclass(frozen=True, kw_only=True)
class Period:
    """Everything about one period that a reader can choose.

    Args:
        name: Its name in JSON and in the page's address.
        label: Its name on the page.
        first: First hour of it, included.
        last: Last hour of it, included.
        compared: First and last hour of the period it is compared with; None: there is none.
        figures: The headline numbers.
        charts: Series over its hours or days.
        grids: Shaded tables.
        rankings: The largest of many.
    """

    name: str
    label: str
    first: str
    last: str
    compared: tuple[str, str] | None
    figures: Sequence[Figure]
    charts: Sequence[Chart]
    grids: Sequence[Grid]
    rankings: Sequence[Ranking]


@dataclass(frozen=True, kw_only=True)
class Audience:
    """The figures of what the data is about.

    Args:
        title: Title of the part.
        since: First hour of the history they are computed from.
        until: Last hour of it.
        chosen: Name of the period that is shown first.
        periods: The periods to choose from.
        notes: Sentences about what is counted and what is not.
    """

    title: str
    since: str
    until: str
    chosen: str
    periods: Sequence[Period]
    notes: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True, kw_only=True)
class Words:
    """A piece of a text for a person; a command is one to be typed."""

    text: str
    is_command: bool


def words_of(remedy: Remedy) -> list[Words]:
    """Cut a remedy into texts and commands, as this process renders them."""
    return [Words(text=str(Remedy(part)), is_command=not isinstance(part, str)) for part in remedy.parts]
