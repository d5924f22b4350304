"""Orders counted names into a ranking of the report: the largest first, with names that are safe to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from blogdata.report.elements import RankedRow, Ranking, RankingKind

SHOWN = 25
"""Rows of a ranking that the page shows."""
LONGEST_NAME = 200


def ranking(
    kind: RankingKind,
    counted: Mapping[str, Sequence[int]],
    before: Mapping[str, int] | None,
    *,
    apart: Mapping[str, str] = MappingProxyType({}),
) -> Ranking:
    """Order what was counted.

    Args:
        kind: The ranking.
        counted: Name to its numbers, in the order of the columns.
        before: Name to its first number in the period before; None: not known.
        apart: Names that are not ranked, and what each is shown as.
    """
    every = sorted(counted.items(), key=lambda row: (-row[1][0], row[0]))
    total = sum(numbers[0] for _, numbers in every)

    def ranked(name: str, numbers: Sequence[int]) -> RankedRow:
        return RankedRow(
            name=shown(name),
            values=numbers,
            share=numbers[0] / total if total else 0.0,
            before=None if before is None else before.get(name, 0),
        )

    rows = [row for row in every if row[0] not in apart]
    return Ranking(
        **vars(kind),
        rows=[ranked(*row) for row in rows[:SHOWN]],
        apart=[replace(ranked(*row), name=shown(apart[row[0]])) for row in every if row[0] in apart],
        others=max(0, len(rows) - SHOWN),
    )


def shown(name: str) -> str:
    """Cut a name, and mark what does not print: the name is whatever a visitor or a browser has sent."""
    cut = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in cut)
