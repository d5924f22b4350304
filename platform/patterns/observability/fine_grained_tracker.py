"""Fine-Grained Tracker: which columns a column is computed from, and which run a row comes from.

Problem: a figure is doubted, and nobody can say which fields of which source went into it.

How it works: while a write's transaction is open, the engine walks Spark's analysed plan and follows every
output column
through projections, aggregates, joins, unions and generators down to the columns of the tables and files
that were read. What was computed is what is recorded: nothing is typed by hand, so nothing goes stale.
For rows: a partition is published whole by one commit, so partition and dataset lead to the run and its code.

The trap: a column that only filters, joins or orders is no input of the others; listing it would make everything
depend on everything.

When not to use it: with ``Engine.CHECKPOINT`` the plan ends at the checkpoint, and no lineage is recorded.

Source: Data Engineering Design Patterns, ch. 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patterns.core.commit import Commit
from patterns.core.events import EventLog
from patterns.core.lake import Lake


@dataclass(frozen=True, kw_only=True)
class ColumnSource:
    """A column of a dataset of the lake (`silver.visits`) or of the landing zone (`landing.visits`)."""

    dataset: str
    column: str


@dataclass(frozen=True, kw_only=True)
class RowOrigin:
    """The run that published a row, and the code it ran."""

    dataset: str
    partition: str
    table_version: int
    run_id: str


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


def origin(events: EventLog, dataset: str, partition: str) -> RowOrigin | None:
    """Give the run that published the rows of a partition; None when nothing is published there."""
    entry = events.publications(dataset, [partition]).get(partition)
    if entry is None:
        return None
    return RowOrigin(dataset=dataset, partition=partition, table_version=entry.version, run_id=entry.run_id)


def _source(lake: Lake, landing: str, text: str) -> ColumnSource | None:
    path, column = text.rsplit("#", 1)
    dataset = lake.dataset_at(path)
    if dataset is not None:
        return ColumnSource(dataset=dataset, column=column)
    _, _, below = path.partition(landing.rstrip("/") + "/")
    return ColumnSource(dataset=f"landing.{below.split('/', 1)[0]}", column=column) if below else None
