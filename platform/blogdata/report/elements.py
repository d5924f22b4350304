"""What the page says about the blog, as plain data: for the HTML page and for JSON alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

SHOWN = 25
"""Rows of a ranking."""
LONGEST_NAME = 200


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
    """One number with its definition. `before` is that of the period before; None where a number is not defined."""

    name: str
    label: str
    value: float | None
    before: float | None
    definition: str
    unit: Unit = Unit.COUNT


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Counts by hour or by day: keys like `2026-01-31T05` or `2026-01-31`, and a number a key of each line."""

    name: str
    keys: Sequence[str]
    lines: Mapping[str, Sequence[int]]


@dataclass(frozen=True, kw_only=True)
class RankedRow:
    """One row of a ranking: its numbers, in the order of the columns, and its share of all first numbers, 0 to 1."""

    name: str
    values: Sequence[int]
    share: float


@dataclass(frozen=True, kw_only=True)
class RankingKind:
    """A ranking, whatever its period: what one row is (`of`), and the columns, of which the first orders the rows."""

    name: str
    label: str
    of: str
    columns: Sequence[str]
    note: str = ""

    def ranking(
        self, counted: Iterable[tuple[str, Sequence[int]]], apart: Mapping[str, str] = MappingProxyType({})
    ) -> Ranking:
        """Order what was counted by name; `apart` has the names that are not ranked, and what each is shown as."""
        every = sorted(counted, key=lambda row: (-row[1][0], row[0]))
        total = sum(numbers[0] for _, numbers in every) or 1
        ranked = [
            (name, RankedRow(name=printable(apart.get(name, name)), values=numbers, share=numbers[0] / total))
            for name, numbers in every
        ]
        rows = [row for name, row in ranked if name not in apart]
        return Ranking(
            **vars(self),
            rows=rows[:SHOWN],
            apart=[row for name, row in ranked if name in apart],
            others=max(0, len(rows) - SHOWN),
        )


@dataclass(frozen=True, kw_only=True)
class Ranking(RankingKind):
    """The largest of many.

    `apart` has what counts in the shares and is not ranked, such as the blog itself among the referrers; `others` is
    how many more there are.
    """

    rows: Sequence[RankedRow]
    apart: Sequence[RankedRow]
    others: int


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
