"""What a write does to a table: the changes that the one way to write knows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

READ = "read"
"""Note of an appended batch: what outside the lake it was read from, as `landing.visits`."""


@dataclass(frozen=True, kw_only=True)
class Overwrite:
    """Replace the rows that match a condition on the partition column; "true": all rows."""

    predicate: str

    def options(self) -> dict[str, str]:
        """Give what the writer is told."""
        return {"replaceWhere": self.predicate}


@dataclass(frozen=True, kw_only=True)
class Rewrite(Overwrite):
    """Replace all rows by what was computed from them, or nothing when there are others by then.

    Args:
        at: Version of the table the rows were computed from.
    """

    predicate: str = "true"
    at: int

    def options(self) -> dict[str, str]:
        """Give what the writer is told."""
        return {**super().options(), "at": str(self.at)}


@dataclass(frozen=True, kw_only=True)
class Upsert:
    """Change the rows that have the same key, and insert those that have none.

    Args:
        key: Columns that identify a row.
        columns: All columns of the table.
        deleted: Boolean column of the changes that marks a row as removed; None: changes remove nothing.
        at: Version of the table the changes are for; None: whichever it is at.
    """

    key: tuple[str, ...]
    columns: tuple[str, ...]
    deleted: str | None
    at: int | None

    def options(self) -> dict[str, str]:
        """Give what the writer is told."""
        return {"merge": json.dumps(asdict(self))}


@dataclass(frozen=True, kw_only=True)
class Statement:
    """Have one of Delta's own SQL statements change the table at a path; `{table}` in it stands for the table.

    Args:
        sql: The statement.
        path: Address of the table.
        at: Version of the table the statement is for; None: whichever it is at.
    """

    sql: str
    path: str
    at: int | None = None

    def options(self) -> dict[str, str]:
        """Give what the writer is told."""
        told = {"statement": self.sql.format(table=f"delta.`{self.path}`")}
        return told if self.at is None else {**told, "at": str(self.at)}


@dataclass(frozen=True, kw_only=True)
class Append:
    """Add rows to those that are there: one batch of a stream, once, whichever run brings it.

    Args:
        stream: Name of the stream and of its progress; its batches come in order.
        batch: Number of the batch, 0 or more.
        turn: Its number among all batches of the table, whichever stream brings them; it is refused when another one
            has taken that number since. None: others do not matter.
        notes: What else the commit shall say of the batch, as plain JSON values.
    """

    stream: str
    batch: int
    turn: int | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    def options(self) -> dict[str, str]:
        """Give what the writer is told."""
        return {} if self.turn is None else {"turn": str(self.turn)}

    def writer_id(self, dataset: str) -> str:
        """Give what the batches of the stream have in common."""
        return f"{dataset}/{self.stream}"

    def commit_id(self, dataset: str) -> str:
        """Give what tells this batch from all others of the dataset."""
        return f"{self.writer_id(dataset)}/{self.batch}"


Change = Overwrite | Upsert | Statement | Append
