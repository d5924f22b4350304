"""The expected rows of the small lineage, in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from laws.small_lineage import Line

Rows = list[tuple[Any, ...]]


def clicks_of(arrived: Sequence[Line], hour: str) -> Rows:
    """Compute the clicks of an hour: of several lines of one click the first to arrive counts."""
    found: dict[int, list[Line]] = defaultdict(list)
    for line in sorted(arrived):
        if line.hour == hour:
            found[line.click].append(line)
    return sorted(
        (hour, click, told[0].page, len(told), sum(line.page != told[0].page for line in told))
        for click, told in found.items()
    )


def pages_of(clicks: Rows) -> Rows:
    return sorted(Counter(row[2] for row in clicks).items())
