"""Aligned Fan-In: a longer period is computed from all of its shorter partitions, when all of them are there.

Problem: a day computed from 23 hours looks like a day with fewer visitors.

How it works: :func:`completeness` compares the partitions a period needs with those that are there. Automation
runs a period only when nothing is missing (Dagster's eager condition waits for missing inputs); whoever computes it
before that, because the log of today ends at noon, gets the figures with the number of hours in them on every row. When
the rest comes, the period is behind its inputs and runs again; one that has ended without it is named by the check
`complete`, whatever is published after it.

The trap: an hour without a visit is there and empty, an hour that never landed is missing, even if late rows of it
came with another hour. Only the first counts.

When not to use it: when the report must leave at a deadline with whatever is there (Unaligned Fan-In).

Source: Data Engineering Design Patterns, ch. 6.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from publish.partitions import Grain, finer


@dataclass(frozen=True, kw_only=True)
class Completeness:
    """Which of the partitions a period is made of are there.

    Args:
        needed: All of them, in order.
        missing: Those that are not published.
    """

    needed: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def present(self) -> int:
        """How many are there."""
        return len(self.needed) - len(self.missing)

    @property
    def complete(self) -> bool:
        """True when none is missing."""
        return not self.missing


def completeness(
    periods: Sequence[str], grain: Grain, of: Grain, published: Collection[str]
) -> dict[str, Completeness]:
    """Compare what periods are made of with what is published.

    Args:
        periods: Keys of days or weeks.
        grain: Their length.
        of: Length of the partitions they are made of.
        published: Keys of the partitions that are there.

    Returns:
        Period to its completeness.
    """
    there = set(published)
    result = {}
    for period in periods:
        needed = finer(period, grain, of)
        result[period] = Completeness(needed=needed, missing=tuple(key for key in needed if key not in there))
    return result
