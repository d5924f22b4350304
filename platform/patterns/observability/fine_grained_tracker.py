"""Fine-Grained Tracker: the columns of datasets and landed files that a column is computed from (column lineage).

Problem: a figure is in doubt, and it is unknown which source fields it was computed from.

How it works: while a write's transaction is open, the engine walks Spark's analysed plan and follows every
output column through projections, aggregates, joins, unions and generators down to the columns of the tables and
files that were read. A stream's batch has no files in its plan; there the lineage ends at the source that the batch
names. The lineage is recorded from the executed plan, not written by hand, so it cannot become stale.
The run that wrote a row is known from the row's partition, see Metadata Decorator.

The trap: a column that is only used to filter, join or sort is no input of the other columns; including it would make
every column depend on every other.

When not to use it: with ``Engine.CHECKPOINT`` the plan ends at the checkpoint, and no lineage is recorded.

Source: Data Engineering Design Patterns, ch. 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lake.commit import Commit
from lake.lake import Lake
from publish.changes import READ


@dataclass(frozen=True, kw_only=True)
class ColumnSource:
    """A column of a dataset of the lake (`silver.visits`) or of the landing zone (`landing.visits`)."""

    dataset: str
    column: str


def sources(lake: Lake, landing: str, commit: Commit) -> Mapping[str, Sequence[ColumnSource]]:
    """Find the source columns of each column of a commit.

    Args:
        lake: The tables' root, to translate paths into dataset names.
        landing: Path of the landing zone.
        commit: A publication.

    Returns:
        Output column to its sources, sorted. The table itself, which a merge also reads, is not listed as a source.
    """
    streamed = commit.info.get("appended", {}).get("notes", {}).get(READ)
    return {
        column: [
            source
            for source in (_source(lake, landing, text, streamed) for text in found)
            if source is not None and source.dataset != commit.dataset
        ]
        for column, found in commit.info["column_lineage"].items()
    }


def _source(lake: Lake, landing: str, text: str, streamed: str | None) -> ColumnSource | None:
    path, column = text.rsplit("#", 1)
    if not path:
        # A stream's batch, or rows that a step has computed first: only of a stream is it known where they came from.
        return None if streamed is None else ColumnSource(dataset=streamed, column=column)
    dataset = lake.dataset_at(path)
    if dataset is not None:
        return ColumnSource(dataset=dataset, column=column)
    _, _, below = path.partition(landing.rstrip("/") + "/")
    return ColumnSource(dataset=f"landing.{below.split('/', 1)[0]}", column=column) if below else None
