"""Fine-Grained Tracker: the columns of datasets and landed files that a column is computed from (column lineage).

Problem: a figure is in doubt, and it is unknown which source fields it was computed from.
How it works: when rows are written, the engine walks Spark's analysed plan and follows every output column through
projections, aggregates, joins, unions and generators down to the columns of the tables and files that were read
(:func:`sources`), through rows that were computed once and kept, too (:mod:`blogdata.table.kept_rows`). A stream's
batch has no files in its plan; there the lineage ends at the source that the batch names. The run that wrote a row is
known from the row's partition, see Metadata Decorator.
The trap: a column that is only used to filter, join or sort is no input of the other columns; including it would make
every column depend on every other. It is read all the same: :func:`read` has it. And a publication whose lineage was
lost looks like one that reads nothing: it must count as one that reads everything.
When not to use it: for the rows of a source that Spark does not read itself; there only the source is known.
Source: Data Engineering Design Patterns, ch. 10.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blogdata.contract.publication import Commit
from blogdata.table.lake import Lake
from blogdata.table.target import READ

_OF_A_LINE = ("raw", "source_file", "source_offset")


@dataclass(frozen=True, kw_only=True)
class ColumnSource:
    """A column of a dataset of the lake (`silver.visits`) or of the landing zone (`landing.visits`)."""

    dataset: str
    column: str


def read(lake: Lake, landing: str, commit: Commit) -> set[ColumnSource] | None:
    """Return all columns that a publication read, also those of the table itself and those that it filters or joins by.

    None if the source of any is unknown: written without the engine, or computed from what Spark does not name.
    """
    recorded = commit.info.get("columns_read")
    columns = [_source(lake, landing, text, commit) for text in recorded or ()]
    known = {column for column in columns if column is not None}
    return None if recorded is None or None in columns else known


def sources(lake: Lake, landing: str, commit: Commit) -> Mapping[str, Sequence[ColumnSource]]:
    """Map output columns to their sources, sorted; the table itself, which a merge also reads, is none."""
    return {
        column: [
            source
            for source in dict.fromkeys(_source(lake, landing, text, commit) for text in texts)
            if source is not None and source.dataset != commit.dataset
        ]
        for column, texts in commit.info["column_lineage"].items()
    }


def streamed_from(commit: Commit) -> set[str]:
    """Return the source that a stream's batch names; it has no files in its plan."""
    return set(filter(None, [commit.info.get("appended", {}).get("notes", {}).get(READ)]))


def _source(lake: Lake, landing: str, text: str, commit: Commit) -> ColumnSource | None:
    path, column = text.rsplit("#", 1)
    if not path:
        # What a stream with state emits has columns of its own, which are computed from whole lines.
        column = column if column in _OF_A_LINE else "raw"
        return next((ColumnSource(dataset=source, column=column) for source in streamed_from(commit)), None)
    dataset = lake.dataset_at(path)
    if dataset is not None:
        return ColumnSource(dataset=dataset, column=column)
    _, _, below = path.partition(landing.rstrip("/") + "/")
    return ColumnSource(dataset=f"landing.{below.split('/', 1)[0]}", column=column) if below else None
