"""The inbox of an External Trigger: events wait in one SQLite file until their run exists, whatever dies in between.

An event is committed before its sender gets an answer, so one that was answered is never lost. The source and the id
are the primary key, so one that is delivered again is found again. Nothing accepted is ever removed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Literal

from blogdata.durable.sqlite_file import SqliteStore
from blogdata.errors import ConfigurationError, PlatformError
from blogdata.patterns.ingestion.trigger_event import IdReused, TriggerEvent, parse

State = Literal["waiting", "started", "failed"]
REFUSED = "refused-"
"""Prefix of the name of a refused notification; its number follows."""
_KEPT_REFUSALS = 1000
_KEPT_FORGERIES = 100
_SCHEMA = """
CREATE TABLE events (
    number INTEGER PRIMARY KEY, key TEXT UNIQUE, body TEXT, digest TEXT, channel TEXT, origin TEXT, version TEXT,
    received REAL, state TEXT, run_number INTEGER, tries INTEGER, next_try REAL, run_id TEXT, reason TEXT
);
CREATE INDEX of_state ON events (state, number);
CREATE TABLE refusals (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL, channel TEXT, origin TEXT, sender TEXT, kind TEXT, what TEXT,
    body BLOB
);
CREATE TABLE files (name TEXT PRIMARY KEY, mark TEXT);
"""


class InboxUnusable(PlatformError):
    """Raised when the inbox cannot be read or written; the sender keeps the event and sends it again."""

    transient = True


@dataclass(frozen=True, kw_only=True)
class InboxEntry:
    """An accepted event.

    Args:
        event: The event.
        channel: How it arrived, `http` or `file`.
        origin: Address or file it arrived from.
        version: Version of the platform that accepted it.
        received: When it was accepted, in seconds since 1970.
        state: `waiting`; `started`, once its run exists; or `failed`, when no run could be started.
        run_number: 1, and one more for each further run that was necessary or that a person requested.
        tries: How often a run was requested under its key.
        next_try: When the next request is due, in seconds since 1970.
        run_id: Its run; None while it has none.
        reason: Why it failed, or why it was tried again.
    """

    event: TriggerEvent
    channel: str
    origin: str
    version: str
    received: float
    state: State = "waiting"
    run_number: int = 1
    tries: int = 0
    next_try: float = 0.0
    run_id: str | None = None
    reason: str = ""

    @property
    def run_key(self) -> str:
        """Identity of its run; the same for all requests of that run."""
        return self.event.key if self.run_number == 1 else f"{self.event.key}, {self.run_number}"


_OF_ENTRY = [field.name for field in fields(InboxEntry) if field.name != "event"]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A notification that was refused.

    Args:
        number: Its number; 0 before it is kept.
        at: When, in seconds since 1970.
        channel: How it arrived.
        origin: Address or file it arrived from.
        sender: The sender whose token it had; None if it had none.
        kind: The kind of refusal.
        what: The reason.
        body: What arrived; None if it was forged or too large.
    """

    number: int = 0
    at: float
    channel: str
    origin: str
    sender: str | None
    kind: str
    what: str
    body: bytes | None

    @property
    def name(self) -> str:
        """Name by which a person refers to it."""
        return f"{REFUSED}{self.number}"


class Inbox(SqliteStore):
    """The inbox of a deployment."""

    # A commit is on the disk when it returns: the sender forgets an event that was answered.
    schema = _SCHEMA
    busy_seconds = 10.0
    unusable = InboxUnusable
    called = "the inbox of events"
    remedy = (
        "check the disk and the file's permissions; senders keep their events meanwhile; if it is damaged, move it "
        "away: the events that waited in it are lost, and their senders may send them again"
    )

    def put(self, entry: InboxEntry) -> tuple[InboxEntry, bool]:
        """Keep an event, unless it is known.

        Args:
            entry: The event.

        Returns:
            The kept entry, and whether it was known before.

        Raises:
            IdReused: Another event of the same source has the same id.
        """
        with self._file.writing() as connection:
            values = (entry.event.key, entry.event.text(), entry.event.digest, entry.channel, entry.origin)
            done = connection.execute(
                "INSERT INTO events (key, body, digest, channel, origin, version, received, state, run_number, tries, "
                "next_try, reason) VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', 1, 0, 0, '') ON CONFLICT DO NOTHING",
                (*values, entry.version, entry.received),
            )
            (row,) = connection.execute("SELECT * FROM events WHERE key = ?", (entry.event.key,))
        if row["digest"] != entry.event.digest:
            raise IdReused(
                what=f"another event of {entry.event.source} had the id {entry.event.id}",
                where="id",
                next_step="send the event under an id of its own",
            )
        return _entry(row), not done.rowcount

    def find(self, event: TriggerEvent) -> InboxEntry | None:
        """Return the entry of an event that was accepted before, with the same content."""
        rows = self._file.read("SELECT * FROM events WHERE key = ? AND digest = ?", event.key, event.digest)
        return _entry(rows[0]) if rows else None

    def waiting(self) -> list[InboxEntry]:
        """Return the waiting events, the oldest first."""
        return [*map(_entry, self._file.read("SELECT * FROM events WHERE state = 'waiting' ORDER BY number"))]

    def newest(self, count: int) -> list[InboxEntry]:
        """Return the last accepted events, and all that wait or failed, the oldest first."""
        rows = self._file.read(
            "SELECT * FROM events WHERE state <> 'started' OR number > (SELECT max(number) FROM events) - ? "
            "ORDER BY number",
            count,
        )
        return [*map(_entry, rows)]

    def refusals(self, count: int) -> list[Refusal]:
        """Return the last refused notifications, the oldest first."""
        rows = self._file.read(
            "SELECT * FROM (SELECT * FROM refusals ORDER BY number DESC LIMIT ?) ORDER BY number", count
        )
        return [Refusal(**row) for row in rows]

    def requested(self, entry: InboxEntry, *, next_try: float) -> None:
        """Note that a run was requested, and when to request it again if there is none by then."""
        self._update(entry, "tries = tries + 1, next_try = ?", next_try)

    def started(self, entry: InboxEntry, run_id: str) -> None:
        """Note the run of an event; it waits no longer."""
        self._update(entry, "state = 'started', run_id = ?, reason = ''", run_id)

    def start_again(self, entry: InboxEntry, *, reason: str, next_try: float) -> None:
        """Have a run that ended before it began followed by another one."""
        self._update(entry, "run_number = run_number + 1, next_try = ?, reason = ?", next_try, reason)

    def failed(self, entry: InboxEntry, reason: str) -> None:
        """Keep an event for which no run could be started, until a person retries it."""
        self._update(entry, "state = 'failed', reason = ?", reason)

    def retry(self, name: str) -> InboxEntry | None:
        """Have an accepted event wait again; one that had a run gets another one.

        Args:
            name: Its `source/id`, or its id if only one source used it.

        Returns:
            The entry as it waits now; None if there is no such event.

        Raises:
            ConfigurationError: Several sources have used the id.
        """
        rows = self._file.read("SELECT * FROM events WHERE key = ? OR substr(key, instr(key, '/') + 1) = ?", name, name)
        exact = [row for row in rows if row["key"] == name] or rows
        if len(exact) > 1:
            raise ConfigurationError(
                what=f"several sources have sent the id {name}",
                where=str(self.path),
                next_step=f"name one of: {', '.join(row['key'] for row in exact)}",
            )
        if not exact:
            return None
        # Dagster starts one run per key. A failed request may still have led to a run, so it keeps its key.
        self._update(
            _entry(exact[0]),
            "run_number = run_number + (run_id IS NOT NULL), state = 'waiting', tries = 0, next_try = 0, "
            "run_id = NULL, reason = ''",
        )
        (row,) = self._file.read("SELECT * FROM events WHERE key = ?", exact[0]["key"])
        return _entry(row)

    def refuse(self, refusal: Refusal) -> None:
        """Keep a refused notification; the oldest ones are removed, forged ones first."""
        values = (refusal.at, refusal.channel, refusal.origin, refusal.sender, refusal.kind, refusal.what, refusal.body)
        with self._file.writing() as connection:
            connection.execute(
                "INSERT INTO refusals (at, channel, origin, sender, kind, what, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
                values,
            )
            for condition, kept in (("IS NULL", _KEPT_FORGERIES), ("IS NOT NULL", _KEPT_REFUSALS)):
                connection.execute(
                    f"DELETE FROM refusals WHERE body {condition} AND number <= (SELECT number FROM refusals "
                    f"WHERE body {condition} ORDER BY number DESC LIMIT 1 OFFSET {kept})"
                )

    def forgive(self, refusal: Refusal) -> None:
        """Remove a refused notification that a person has accepted."""
        with self._file.writing() as connection:
            connection.execute("DELETE FROM refusals WHERE number = ?", (refusal.number,))

    def files(self) -> dict[str, str]:
        """Return the notification files that were read, each with the mark of its content."""
        return {row["name"]: row["mark"] for row in self._file.read("SELECT name, mark FROM files")}

    def note_files(self, marks: Mapping[str, str], gone: Iterable[str]) -> None:
        """Note the files that were read, and forget those that are gone."""
        with self._file.writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?)", marks.items())
            connection.executemany("DELETE FROM files WHERE name = ?", [(name,) for name in gone])

    def _update(self, entry: InboxEntry, change: str, *values: object) -> None:
        # Only the state that the caller has seen: a person may have retried the event meanwhile.
        where = "key = ? AND run_number = ? AND state = ?"
        with self._file.writing() as connection:
            connection.execute(
                f"UPDATE events SET {change} WHERE {where}", (*values, entry.event.key, entry.run_number, entry.state)
            )


def _entry(row: sqlite3.Row) -> InboxEntry:
    return InboxEntry(event=parse(row["body"].encode()), **{name: row[name] for name in _OF_ENTRY})
