"""A journal of answers in one SQLite file, on the disk with every batch and locked by one process at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from blogdata.durable.sqlite_file import SqliteStore
from blogdata.errors import PlatformError
from blogdata.services.files import locked

Answer = Mapping[str, Any]
_DAY = 86_400.0
_SCHEMA = "CREATE TABLE answers (question TEXT PRIMARY KEY, answer TEXT NOT NULL, stored_at REAL NOT NULL)"


class JournalUnusable(PlatformError):
    """Raised when the journal's file cannot be read or written."""


@dataclass(frozen=True, kw_only=True)
class AnswerJournal(SqliteStore):
    """Answers that were paid for and may not be published yet.

    Args:
        path: The file; only its owner may read it.
        kept: How long an answer stays after it was given, published or not, in seconds.
    """

    kept: float = _DAY

    schema = _SCHEMA
    busy_seconds = 600.0
    """How long to wait for another run that is asking."""
    unusable = JournalUnusable
    called = "the journal of answers"
    remedy = "look at the disk; if it is damaged, move it away: every unpublished answer is asked for, and paid, again"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the journal against other processes of this machine.

        Raises:
            LockTimeout: Another run has been asking for too long; transient.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path.with_name(f".{self.path.name}.lock"), seconds=self.busy_seconds):
            yield

    def stored(self) -> dict[str, Answer]:
        """Read the answers, by question."""
        return {row["question"]: json.loads(row["answer"]) for row in self._file.read("SELECT * FROM answers")}

    def append(self, answers: Mapping[str, Answer]) -> None:
        """Add answers; they survive a crash when it returns."""
        lines = [(question, json.dumps(dict(answer)), time.time()) for question, answer in answers.items()]
        with self._file.writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", lines)

    def settle(self) -> None:
        """Drop the answers older than the time they are kept; called when a later step has published all of them."""
        with self.held(), self._file.writing() as connection:
            # Overwrites what is deleted: addresses are personal data.
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("DELETE FROM answers WHERE stored_at <= ?", (time.time() - self.kept,))

    def forget(self, beginnings: Collection[str], *, before: Callable[[int], None] = lambda _: None) -> int:
        """Drop the answers to the questions that begin so, published or not.

        Args:
            beginnings: The beginnings.
            before: Called with the number of the answers before they are dropped.

        Returns:
            Their number.
        """
        if not self.path.exists():
            return 0
        with self.held(), self._file.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            chosen = "FROM answers WHERE substr(question, 1, length(?)) = ?"
            found = sum(connection.execute(f"SELECT count(*) {chosen}", (one, one)).fetchone()[0] for one in beginnings)
            before(found)
            for one in beginnings:
                connection.execute(f"DELETE {chosen}", (one, one))
            return int(found)
