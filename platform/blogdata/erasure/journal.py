"""The journal of an erasure under way: whom it forgets and which of its steps are done; gone when it has ended.

It has the persons' values as they are, since steps search for them after no table has them any more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from blogdata.durable.sqlite_file import SqliteStore
from blogdata.erasure.cleared import Cleared
from blogdata.errors import PlatformError
from blogdata.planning import clock
from blogdata.services.config import Settings
from blogdata.suppression.identifiers import Identifiers

FILE = "forgetting.sqlite"
"""Name of the journal in the home of a deployment."""
_CLEARED = "cleared (place TEXT PRIMARY KEY, what TEXT NOT NULL)"


class JournalUnusable(PlatformError):
    """Raised when the journal cannot be read or written."""


@dataclass(frozen=True, kw_only=True)
class Erasure:
    """An erasure under way.

    Args:
        at: When they were forgotten, seconds since 1970.
        registered: The newest time at which any of them registered; None: unknown.
        done: Names of the steps that are done, to when they were, seconds since 1970; those that an earlier version has
            done: when the erasure began.
    """

    persons: Identifiers
    at: float
    registered: float | None = None
    done: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Journal(SqliteStore):
    """The journal of a deployment: of one erasure at a time."""

    schema = (
        "CREATE TABLE erasure (id INTEGER PRIMARY KEY CHECK (id = 1), persons TEXT NOT NULL, at REAL NOT NULL,"
        " registered REAL);"
        "CREATE TABLE done (step TEXT PRIMARY KEY, at REAL);"
        f"CREATE TABLE {_CLEARED}"
    )
    busy_seconds = 60.0
    unusable = JournalUnusable
    called = "the journal of the erasure under way"
    remedy = "look at the disk; if it is damaged, remove it and forget the same persons again"

    @classmethod
    def of(cls, settings: Settings) -> Journal:
        """Return the journal of a deployment; without an erasure there is no file."""
        return cls(path=settings.home / FILE)

    def begin(self, erasure: Erasure) -> None:
        """Record an erasure before its first step; on the disk when it returns."""
        persons = json.dumps({kind: sorted(values) for kind, values in asdict(erasure.persons).items()})
        with self._file.writing() as connection:
            connection.execute("INSERT INTO erasure VALUES (1, ?, ?, ?)", (persons, erasure.at, erasure.registered))

    def under_way(self) -> Erasure | None:
        """Return the erasure that has not ended, which an earlier version may have begun; None without one."""
        if self.path.exists():
            self._extend()
        for row in self._file.read("SELECT * FROM erasure"):
            persons = {kind: frozenset(values) for kind, values in json.loads(row["persons"]).items()}
            steps = self._file.read("SELECT * FROM done")
            done = {each["step"]: row["at"] if each["at"] is None else each["at"] for each in steps}
            return Erasure(persons=Identifiers(**persons), at=row["at"], registered=row["registered"], done=done)
        return None

    def _extend(self) -> None:
        """Add what a journal of an earlier version lacks."""
        with self._file.writing() as connection:
            connection.execute(f"CREATE TABLE IF NOT EXISTS {_CLEARED}")
            for table, added in (("erasure", "registered"), ("done", "at")):
                if added not in {column["name"] for column in connection.execute(f"PRAGMA table_info({table})")}:
                    connection.execute(f"ALTER TABLE {table} ADD COLUMN {added} REAL")

    def finish(self, step: str) -> None:
        """Record that a step is done."""
        with self._file.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO done VALUES (?, ?)", (step, clock.now().timestamp()))

    def note(self, one: Cleared) -> None:
        """Record what is about to be cleared, before it is: whoever goes on finds only the rest of it."""
        if one.is_empty:
            return
        with self._file.writing() as connection:
            for row in connection.execute("SELECT what FROM cleared WHERE place = ?", (one.place,)).fetchall():
                one = one.after(Cleared(**json.loads(row["what"])))
            connection.execute("INSERT OR REPLACE INTO cleared VALUES (?, ?)", (one.place, json.dumps(asdict(one))))

    def noted(self) -> list[Cleared]:
        """List what was recorded as about to be cleared, by place."""
        return [Cleared(**json.loads(row["what"])) for row in self._file.read("SELECT * FROM cleared ORDER BY place")]

    def end(self) -> None:
        """Overwrite what the journal has, and remove it."""
        with self._file.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("DELETE FROM erasure")
            connection.execute("DELETE FROM done")
            connection.execute("DELETE FROM cleared")
        with suppress(FileNotFoundError):
            self.path.unlink()
