"""The outbox of an ordered delivery: records wait in one SQLite file, and it knows after any crash what was sent.

Numbers are committed before records are sent, and after the answer, what was taken. So a process that dies leaves
records whose outcome is not known (`sending`): the next one sends them first, under the same numbers, and the target
keeps each number of a key once. A numbered record is sent as it was numbered, and not at all once its row is gone.

A record that comes later than one of its key which was sent takes the next number, before the new records of the key.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, ShowLedger
from blogdata.files import SqliteStore, locked

STATES = ("waiting", "sending", "delivered")
_SCHEMA = """
CREATE TABLE records (
    id TEXT PRIMARY KEY, partition TEXT NOT NULL, key TEXT NOT NULL, at INTEGER NOT NULL, digest TEXT NOT NULL,
    payload TEXT, gone INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL, sequence INTEGER
);
CREATE INDEX of_partition ON records (partition);
CREATE INDEX of_state ON records (state, at, id);
CREATE TABLE keys (key TEXT PRIMARY KEY, sequence INTEGER NOT NULL);
CREATE TABLE partitions (
    partition TEXT PRIMARY KEY, source TEXT NOT NULL, rows_in INTEGER NOT NULL, private INTEGER NOT NULL
);
"""
_DUE = """
SELECT records.*, coalesce(keys.sequence, 0) AS last
FROM records LEFT JOIN keys USING (key)
WHERE state IN ('waiting', 'sending') AND NOT gone AND partition < ?
ORDER BY state, records.at, records.id LIMIT ?
"""
_MOST_AT_ONCE = 100_000
"""Records that are held in memory at once."""
_LINES = """
SELECT partitions.*, coalesce(sum(gone), 0) AS withdrawn, {}
FROM partitions LEFT JOIN records USING (partition)
WHERE ?1 IS NULL OR partition = ?1 GROUP BY partition ORDER BY partition
""".format(", ".join(f"sum(state = '{state}' AND NOT gone) AS {state}" for state in STATES))

MOST_TRIES = 50
"""Times a record may fail in one execution; after that it waits for the next one."""


class OutboxUnusable(PlatformError):
    """Raised when the outbox cannot be read or written."""

    transient = True


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row that may be sent, with its event time in microseconds since 1970."""

    identity: Sequence[str]
    key: str
    at: int
    payload: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Delivery:
    id: str
    key: str
    sequence: int
    payload: str
    again: bool = False
    """It was sent before, and may have been taken."""


@dataclass(frozen=True, kw_only=True)
class OutboxLine:
    """The account of a partition: its rows are private, or their records are in one of the states.

    `withdrawn` are sent records whose row is gone, or may no longer be sent; they are not part of `states`.
    """

    partition: str
    source: str
    rows_in: int
    private: int
    states: Mapping[str, int]
    withdrawn: int

    @property
    def missing(self) -> int:
        """Rows that are not accounted for; 0 if none is lost or doubled."""
        return self.rows_in - self.private - sum(self.states.values())


@dataclass(frozen=True, kw_only=True)
class Outbox(SqliteStore):
    # A commit is on the disk when it returns: the request may be at the target a moment later.
    schema = _SCHEMA
    busy_seconds = 10.0
    journal = "WAL"
    unusable = OutboxUnusable
    called = "the outbox"
    remedy = (
        "check the disk and the file's permissions; nothing is sent meanwhile; if it is damaged, put it back from a "
        "copy: without it everything would be sent once more"
    )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only process that takes or sends; the death of the process ends it."""
        # The last connection writes the log back when it closes: this one stays open, so that no other is the last.
        with locked(self.path.with_suffix(".lock"), seconds=0), self.connected():
            yield

    def sources(self) -> dict[str, str]:
        """Return the version of the source that was taken, by partition."""
        return {row["partition"]: row["source"] for row in self.rows("SELECT partition, source FROM partitions")}

    def take(self, partition: str, source: str, rows: Iterable[Row], *, rows_in: int, private: int) -> OutboxLine:
        """Take all rows of a partition that may be sent, in place of what it had before, and return its account."""
        with self.writing() as connection:
            query = "SELECT id, state, digest FROM records WHERE partition = ?"
            known = {row["id"]: row for row in connection.execute(query, (partition,))}
            seen = {identity for row in rows for identity in [_merge(connection, partition, row, known)]}
            gone = [(identity,) for identity in known.keys() - seen]
            connection.executemany("DELETE FROM records WHERE id = ? AND state = 'waiting'", gone)
            connection.executemany("UPDATE records SET gone = 1 WHERE id = ?", gone)
            connection.execute(
                "INSERT OR REPLACE INTO partitions VALUES (?, ?, ?, ?)", (partition, source, rows_in, private)
            )
            line = _line(connection.execute(_LINES, (partition,)).fetchone())
            if line.missing:
                raise PlatformError(
                    what=f"{line.missing} of {rows_in} rows are not accounted for",
                    where=f"{partition}, {source}",
                    next_step=Remedy("nothing of it was taken; look at the account: ", ShowLedger()),
                )
        return line

    def lines(self) -> list[OutboxLine]:
        return [_line(row) for row in self.rows(_LINES, None)]

    def due(self, *, before: str) -> list[Delivery]:
        """Return the records to send next: those whose outcome is not known, then the others in the order of time."""
        last: dict[str, int] = {}
        records = []
        for row in self.rows(_DUE, before, _MOST_AT_ONCE):
            key, payload, again = row["key"], row["payload"], row["state"] == "sending"
            newest = max(row["last"], last.get(key, 0))
            sequence = row["sequence"] or newest + 1
            last[key] = max(sequence, newest)
            records.append(Delivery(id=row["id"], key=key, sequence=sequence, payload=payload, again=again))
        return records

    def number(self, records: Sequence[Delivery]) -> None:
        """Note that records are about to be sent under their numbers."""
        with self.writing() as connection:
            connection.executemany(
                "UPDATE records SET state = 'sending', sequence = ? WHERE id = ?",
                [(record.sequence, record.id) for record in records],
            )
            connection.executemany(
                "INSERT INTO keys VALUES (?, ?) ON CONFLICT (key) DO UPDATE "
                "SET sequence = max(sequence, excluded.sequence)",
                [(record.key, record.sequence) for record in records],
            )

    def refused(self, records: Sequence[Delivery]) -> None:
        """Note what the target has certainly not taken: it waits, and is sent as its row is then."""
        with self.writing() as connection:
            connection.executemany(
                "UPDATE records SET state = 'waiting', sequence = NULL WHERE id = ?",
                [(record.id,) for record in records if not record.again],
            )
            connection.executemany(
                "UPDATE keys SET sequence = "
                "coalesce((SELECT max(sequence) FROM records WHERE records.key = keys.key), 0) WHERE key = ?",
                [(key,) for key in {record.key for record in records}],
            )

    def taken(self, records: Iterable[Delivery]) -> None:
        """Note what the target has taken; it is not kept a second time."""
        with self.writing() as connection:
            statement = "UPDATE records SET state = 'delivered', payload = NULL WHERE id = ?"
            connection.executemany(statement, [(record.id,) for record in records])

    def sent(self, keys: Iterable[str]) -> int:
        """Count the records of some keys that were sent, or may have been."""
        return sum(
            row[0] for key in keys for row in self.rows("SELECT count(sequence) FROM records WHERE key = ?", key)
        )

    def forget(self, keys: Iterable[str]) -> None:
        """Delete all records of some keys, as if their rows had never been taken."""
        with self.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            for key in keys:
                connection.execute(
                    "UPDATE partitions SET rows_in = rows_in - (SELECT count(*) FROM records "
                    "WHERE records.partition = partitions.partition AND NOT gone AND key = ?)",
                    (key,),
                )
                connection.execute("DELETE FROM records WHERE key = ?", (key,))
                connection.execute("DELETE FROM keys WHERE key = ?", (key,))


def _merge(connection: sqlite3.Connection, partition: str, row: Row, known: Mapping[str, sqlite3.Row]) -> str:
    identity = _digest(list(row.identity))
    payload = json.dumps(row.payload, sort_keys=True, separators=(",", ":"))
    digest, before = _digest([row.key, payload]), known.get(identity)
    if before is not None and before["state"] != "waiting":
        connection.execute("UPDATE records SET gone = 0 WHERE id = ?", (identity,))
    elif before is None or before["digest"] != digest:
        connection.execute(
            "INSERT OR REPLACE INTO records (id, partition, key, at, digest, payload, state) "
            "VALUES (?, ?, ?, ?, ?, ?, 'waiting')",
            (identity, partition, row.key, row.at, digest, payload),
        )
    return identity


def _line(row: sqlite3.Row) -> OutboxLine:
    states = {state: row[state] for state in STATES if row[state]}
    names = ("partition", "source", "rows_in", "private", "withdrawn")
    return OutboxLine(states=states, **{name: row[name] for name in names})


def _digest(values: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
