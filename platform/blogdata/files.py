"""Files: written whole or not at all, locked, closed to others, and SQLite files whose commits are on the disk.

The home folder is closed to all other users. Files with secrets or persons are created for their owner only all the
same, because a file may be copied to another place. A landing zone or a lake outside the home keeps its permissions:
producers and readers of other users need them.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal
from uuid import uuid4

from blogdata.errors import PlatformError


def write_atomically(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write a file so that readers see the old content or all of the new one."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


CURRENT = "current"
"""The link that readers open."""


def appear(home: Path, name: str, write: Callable[[Path], None]) -> None:
    """Write a folder beside where readers look, and rename it once it is whole; one that is there already stays."""
    if (home / name).exists():
        # Of a process that died before it switched the link.
        return
    home.mkdir(parents=True, exist_ok=True)
    staged = home / f".{uuid4()}"
    write(staged)
    staged.rename(home / name)


def switch(home: Path, name: str) -> None:
    """Let readers find another folder from now on."""
    link = home / f".{uuid4()}"
    link.symlink_to(name)
    link.replace(home / CURRENT)


def remove_others(home: Path, *, keep: Collection[str]) -> None:
    """Remove the folders that are not to be kept, and what processes that died have left; the link stays."""
    for path in list(home.iterdir()) if home.is_dir() else []:
        if path.name in {CURRENT, *keep}:
            continue
        if path.is_symlink():
            path.unlink()
            continue
        # A folder goes as it came, by one rename: no half of it is read.
        hidden = path if path.name.startswith(".") else path.rename(home / f".{uuid4()}")
        shutil.rmtree(hidden)


_OTHERS = 0o077
_SECRETS = ("blogdata.toml", "secrets/*", "services/*/*.json", "services/*/*.conf")


def exposed_secrets(home: Path) -> list[Path]:
    patterns = _SECRETS if _is_open(home) else ("secrets/*",)
    files = (file for pattern in patterns for file in home.glob(pattern))
    return sorted(file for file in files if file.is_file() and _is_open(file))


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & _OTHERS)


class LockTimeout(PlatformError):
    transient = True


def for_owner(path: str, flags: int) -> int:
    """Open a file as :func:`open` does; a new one is readable and writable by its owner only, whatever the umask."""
    return os.open(path, flags, 0o600)


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def is_same_folder(recorded: str, folder: Path) -> bool:
    """Return whether a recorded path is that of a folder now: it is not if folder and record were copied or moved."""
    return Path(recorded).is_absolute() and Path(recorded).is_dir() and folder.is_dir() and folder.samefile(recorded)


@contextmanager
def locked(path: Path, *, seconds: float = 300.0, mode: int = 0o600) -> Iterator[None]:
    """Hold an exclusive lock between processes; the system releases it when its holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + seconds
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, mode)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    what = f"Another process has been at work here for more than {seconds:g} s"
                    next_step = "Wait for it and run this again, or end that process"
                    raise LockTimeout(what=what, where=str(path), next_step=next_step) from None
                time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


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
    """Error for a file that cannot be read or written, which says what it is `called`, and its `remedy`."""
    called: ClassVar[str]
    remedy: ClassVar[str]

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """Return the rows of a query; none if there is no file yet."""
        if not self.path.exists():
            return []
        with self.connected() as connection:
            return connection.execute(query, values).fetchall()

    def check(self) -> None:
        """Read the whole file, if there is one, without changing it; raise `unusable` if it is damaged."""
        if self.path.exists() and (damage := problem(self.path)):
            raise self._unusable(damage)

    def scrub(self) -> None:
        """Leave nothing of deleted rows in free pages or a log; raise `unusable` if another process uses the file."""
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
        # A file that is there is never opened here: closing it would release the locks of this process's connections.
        # If it cannot be created, SQLite says why. It gives its journals the permissions of the file.
        with suppress(OSError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
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

    def _create(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have created the tables meanwhile.
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            for statement in self.schema.split(";"):
                connection.execute(statement)
            connection.execute("PRAGMA user_version = 1")
        connection.execute("COMMIT")

    def _unusable(self, problem: str) -> PlatformError:
        what = f"{self.called} cannot be used: {problem}"
        return self.unusable(what=what, where=str(self.path), next_step=self.remedy)


def problem(path: Path, *, whole: bool = True) -> str | None:
    """Read a SQLite file without changing it; return what SQLite, which keeps no checksums, finds wrong, or None."""
    query = "PRAGMA quick_check(1)" if whole else "SELECT 'ok' WHERE (SELECT count(*) FROM sqlite_master) >= 0"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            answers = [row[0] for row in connection.execute(query)]
    except sqlite3.Error as error:
        return str(error)
    return None if answers == ["ok"] else str(answers[0])


PARTIAL = ".partial"
"""Ending of the hidden name under which a file is written until it is whole."""


def hidden(target: Path) -> Path:
    """Return the hidden name under which a file is written until it is whole; its folder is created."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}{PARTIAL}")
    # Writing through a foreign link at this path would overwrite the link's target.
    if partial.is_symlink():
        partial.unlink()
    return partial


def write_whole(target: Path, data: bytes) -> None:
    """Write a small file under a hidden name, and rename it once it is whole."""
    partial = hidden(target)
    partial.write_bytes(data)
    partial.replace(target)


def alone(folder: Path) -> AbstractContextManager[None]:
    """Be the only process, of any user, that adds whole files to a folder; others wait."""
    # A file, because file systems of a network lock no folder.
    return locked(folder / ".lock", seconds=math.inf, mode=0o666)
