"""One SQLite file whose commits are on the disk when they return."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from blogdata.errors import PlatformError

_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class SqliteStore:
    """What is kept in one SQLite file and nowhere else; it is created when it is first used for more than reading."""

    path: Path

    schema: ClassVar[str]
    busy_seconds: ClassVar[float]
    """How long to wait for another process that writes."""
    journal: ClassVar[Literal["DELETE", "WAL"]] = "DELETE"
    """With `WAL` readers and a writer do not wait for one another."""
    unusable: ClassVar[type[PlatformError]]
    """Raised when the file cannot be read or written."""
    called: ClassVar[str]
    """What the store is called in that error."""
    remedy: ClassVar[str]
    """Next step of that error."""

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """Return the rows of a query; none if there is no file yet."""
        if not self.path.exists():
            return []
        with self.connected() as connection:
            return connection.execute(query, values).fetchall()

    def check(self) -> None:
        """Read the whole file, if there is one, without changing it; raise `unusable` if it is damaged."""
        if self.path.exists() and (found := problem(self.path)):
            raise self._unusable(found)

    def scrub(self) -> None:
        """Leave nothing of deleted rows in the file, if there is one: neither free pages nor a log of writes.

        It raises `unusable` if another process uses the file.
        """
        if not self.path.exists():
            return
        with self.connected() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("VACUUM")
            if self.journal == "WAL" and connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                raise sqlite3.OperationalError("its log is in use")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction; it is committed at the end, or rolled back with any exception."""
        with self.connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                # After some errors, such as a full disk, SQLite has rolled back: doing it again would hide the error.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        self._create_for_owner()
        try:
            with closing(sqlite3.connect(self.path, timeout=self.busy_seconds, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                connection.execute("PRAGMA synchronous = FULL")
                if self.journal == "WAL":
                    connection.execute("PRAGMA journal_mode = WAL")
                if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                    self._create(connection)
                yield connection
        except sqlite3.Error as error:
            raise self._unusable(str(error)) from error

    def _create_for_owner(self) -> None:
        # A file that is there is never opened here: closing it would release the locks of this process's connections.
        # If it cannot be created, SQLite says why. It gives its journals the permissions of the file.
        with suppress(OSError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def _create(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have created the tables meanwhile.
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            for statement in self.schema.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")

    def _unusable(self, problem: str) -> PlatformError:
        return self.unusable(
            what=f"{self.called} cannot be used: {problem}", where=str(self.path), next_step=self.remedy
        )


def problem(path: Path, *, whole: bool = True) -> str | None:
    """Read a SQLite file without changing it, and return what is wrong with it; None if nothing is.

    A byte that is flipped within a value is not noticed: SQLite keeps no checksums.
    """
    query = "PRAGMA quick_check(1)" if whole else "SELECT 'ok' WHERE (SELECT count(*) FROM sqlite_master) >= 0"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found = [row[0] for row in connection.execute(query)]
    except sqlite3.Error as error:
        return str(error)
    return None if found == ["ok"] else str(found[0])
