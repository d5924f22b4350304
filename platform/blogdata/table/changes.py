"""The kinds of change that a write can make to a table: overwrite, extend, rewrite, exchange and append."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

READ = "read"
"""Key in the notes of an appended batch: its source outside the lake, e.g. `landing.visits`."""


@dataclass(frozen=True, kw_only=True)
class Overwrite:
    """Replace the rows of some partitions, or of the whole table."""


@dataclass(frozen=True, kw_only=True)
class Extend(Overwrite):
    """Replace the rows of some partitions, and only add rows to others; refused if the table has changed since.

    Args:
        kept: Partitions, among those of the batch, whose rows stay beside the new ones; they are audited together.
    """

    kept: tuple[str, ...]
    at: int


@dataclass(frozen=True, kw_only=True)
class Rewrite(Overwrite):
    """Replace all rows by rows computed from them; refused if the table's rows have changed since."""

    at: int


@dataclass(frozen=True, kw_only=True)
class Exchange(Rewrite):
    """Replace the rows of some files by rows computed from them; all others of the table stay."""

    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AppendBatch:
    """Append one batch of a stream, exactly once, whichever run writes it.

    Args:
        stream: Name of the stream, under which Delta keeps its progress; its batches come in order.
        turn: Number of the batch among all batches of the table, of any stream. The write is refused if another batch
            has taken that number. None: other batches do not matter.
    """

    stream: str
    batch: int
    turn: int | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    def writer_id(self, dataset: str) -> str:
        return f"{dataset}/{self.stream}"

    def commit_id(self, dataset: str) -> str:
        return f"{self.writer_id(dataset)}/{self.batch}"


Change = Overwrite | AppendBatch
