"""What a page consists of: figures, charts and tables as plain data, for the HTML page and for JSON alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from blogdata.errors.remedies import Remedy


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
class ChartLine:
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
    """Series over hours, days, weeks or months.

    Args:
        name: Its name in JSON: `hours`, `days`, `weeks` or `months`.
        label: Its title on the page.
        keys: Hours like `2026-01-31T05` or days like `2026-01-31`, in order; of a week or month its first day.
        lines: The series; the page shows one of them at a time.
    """

    name: str
    label: str
    keys: Sequence[str]
    lines: Sequence[ChartLine]


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
class RankingKind:
    """A ranking, whatever its period.

    Args:
        name: Its name in JSON.
        label: Its title on the page.
        of: What one row is, such as `page`.
        columns: Names of the numbers; the first one orders the rows.
        monospaced: Whether the names are paths and the like.
        better: Whether growth is good news, 1, bad news, -1, or neither, 0.
    """

    name: str
    label: str
    of: str
    columns: Sequence[str]
    monospaced: bool = False
    better: int = 1


@dataclass(frozen=True, kw_only=True)
class Ranking(RankingKind):
    """The largest of many, with what each counts.

    Args:
        rows: The name of each and its numbers; `before` is the first number in the period before.
        apart: What counts in the shares and is not ranked, such as the blog itself among the referrers.
        others: How many more there are.
    """

    rows: Sequence[RankedRow]
    apart: Sequence[RankedRow] = ()
    others: int = 0


@dataclass(frozen=True, kw_only=True)
class RankedRow:
    """One row of a ranking.

    Args:
        name: What is counted.
        values: Its numbers, in the order of the ranking's columns.
        share: Its share of the first number over all rows, those set apart included, 0 to 1.
        before: The first number in the period before; None: not known.
    """

    name: str
    values: Sequence[int]
    share: float
    before: int | None


@dataclass(frozen=True, kw_only=True)
class ReportPeriod:
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
class Section:
    """Rankings that answer one question.

    Args:
        title: The question, or what they have in common.
        rankings: Their names.
        note: What is counted in them, where that is not what the figures count.
    """

    title: str
    rankings: Sequence[str]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class ByDay:
    """The first number of a ranking, by day.

    Args:
        names: What is counted, the largest first.
        counts: Of each name, the days since the first one on which it is counted, each followed by its number.
        apart: Positions of the names that are not ranked.
        others: Of each day, the sum of all names that are not listed.
    """

    names: Sequence[str]
    counts: Sequence[Sequence[int]]
    apart: Sequence[int]
    others: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class History:
    """Counts by day, from which any range of days can be counted.

    Args:
        first: The first day.
        hours: Page views, visits, visitors and new visitors of each hour, from the first of the first day.
        days: The same of each day.
        visits: Of each day, how many visits had their day before how many days ago (0: none), as pairs in one list.
            Those of a range are, on each of its days, those with none in the range before.
        visitors: The same of visitors.
        bounced: Of each day, its visits with one page view that day: days since the one before, days to the one after
            (0: none), and how many, in one list.
        private: Of each day, its page views of visitors who asked not to be shared.
        rankings: The rankings by day.
    """

    first: str
    hours: Mapping[str, Sequence[int]]
    days: Mapping[str, Sequence[int]]
    visits: Sequence[Sequence[int]]
    visitors: Sequence[Sequence[int]]
    bounced: Sequence[Sequence[int]]
    private: Sequence[int]
    rankings: Mapping[str, ByDay]


@dataclass(frozen=True, kw_only=True)
class Audience:
    """The figures of what the data is about.

    Args:
        title: Title of the part.
        since: First hour of the history they are computed from.
        until: Last hour of it.
        chosen: Name of the period that is shown first.
        periods: The periods to choose from.
        sections: The order in which rankings are shown; a section of which a period has none is left out.
        history: What any other range of days is counted from.
        notes: Sentences about what is counted and what is not.
    """

    title: str
    since: str
    until: str
    chosen: str
    periods: Sequence[ReportPeriod]
    sections: Sequence[Section]
    history: History
    notes: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True, kw_only=True)
class Words:
    """A piece of a text for a person; a command is one to be typed."""

    text: str
    is_command: bool


def words_of(remedy: Remedy) -> list[Words]:
    """Cut a remedy into texts and commands, as this process renders them."""
    return [Words(text=str(Remedy(part)), is_command=not isinstance(part, str)) for part in remedy.parts]
