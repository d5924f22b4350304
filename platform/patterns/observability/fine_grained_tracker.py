"""Fine-Grained Tracker: which columns of which datasets and landed files a column is computed from.

Problem: a figure is doubted, and nobody can say which fields of which source went into it.

How it works: while a write's transaction is open, the engine walks Spark's analysed plan and follows every
output column through projections, aggregates, joins, unions and generators down to the columns of the tables and
files that were read. What was computed is what is recorded: nothing is typed by hand, so nothing goes stale. Which
run a row comes from is known by its partition, see Metadata Decorator.

The trap: a column that only filters, joins or orders is no input of the others; listing it would make everything
depend on everything.

When not to use it: with ``Engine.CHECKPOINT`` the plan ends at the checkpoint, and no lineage is recorded.

Source: Data Engineering Design Patterns, ch. 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lake.commit import Commit
from lake.lake import Lake


@dataclass(frozen=True, kw_only=True)
class ColumnSource:
    """A column of a dataset of the lake (`silver.visits`) or of the landing zone (`landing.visits`)."""

    dataset: str
    column: str


def sources(lake: Lake, landing: str, commit: Commit) -> Mapping[str, Sequence[ColumnSource]]:
    """Give the source columns of each column of a commit.

    Args:
        lake: The tables' root, to turn paths into names.
        landing: Path of the landing zone.
        commit: A publication.

    Returns:
        Output column to its sources, sorted. What a merge has looked up in its own table is no source of it.
    """
    return {
        column: [
            source
            for source in (_source(lake, landing, text) for text in found)
            if source is not None and source.dataset != commit.dataset
        ]
        for column, found in commit.info["column_lineage"].items()
    }


def _source(lake: Lake, landing: str, text: str) -> ColumnSource | None:
    path, column = text.rsplit("#", 1)
    dataset = lake.dataset_at(path)
    if dataset is not None:
        return ColumnSource(dataset=dataset, column=column)
    _, _, below = path.partition(landing.rstrip("/") + "/")
    return ColumnSource(dataset=f"landing.{below.split('/', 1)[0]}", column=column) if below else None
