"""The outbox of an ordered delivery: records wait in one SQLite file, and it knows after any crash what was sent.

A partition of the source is taken in one transaction: its new records wait, and those that are gone or changed do not
any more, if they were not sent. Before a request is sent, it is committed with its id and its records; after its
answer, what was taken. So a process that dies leaves, at most, open requests. The next one repeats
them under the same id.

The target honours an id for a limited time. An older open request is not repeated, because its records might be taken
twice; nor is one with a record that may no longer be sent. Such a request is held for a person, and so are its keys.

A record whose key has had a later one already is a *correction*: it is sent with this mark, before the new records of
the key, and takes the next number, so that the target applies it to what it has. Corrections of a key are in the order
of their times, too.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import sqlite3
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from blogdata.durable.sqlite_file import SqliteStore
from blogdata.errors import ConfigurationError, PlatformError
from blogdata.errors.remedies import Remedy, ShowLedger
from blogdata.patterns.data_value.outbox_account import Delivery, DeliveryRequest, Forgotten, Open, OutboxLine, Row

MOST_AT_ONCE = 100_000
"""Most records that are loaded for one delivery; the others follow in the next one."""
_SCHEMA = """
CREATE TABLE records (
    id TEXT PRIMARY KEY, partition TEXT NOT NULL, key TEXT NOT NULL, at INTEGER NOT NULL, digest TEXT NOT NULL,
    payload TEXT, newer TEXT, gone INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL, sequence INTEGER, request TEXT
);
CREATE INDEX of_partition ON records (partition);
CREATE INDEX of_state ON records (state, at, id);
CREATE INDEX of_request ON records (request) WHERE request IS NOT NULL;
CREATE TABLE keys (key TEXT PRIMARY KEY, sequence INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE TABLE requests (id TEXT PRIMARY KEY, bulk INTEGER NOT NULL, opened REAL NOT NULL);
CREATE TABLE partitions (
    partition TEXT PRIMARY KEY, source TEXT NOT NULL, rows_in INTEGER NOT NULL, private INTEGER NOT NULL
);
"""
_MARKED = (
    "SELECT records.*, coalesce(keys.sequence, 0) AS taken, records.at < coalesce(keys.at, records.at) AS correction "
    "FROM records LEFT JOIN keys USING (key)"
)
"""The records, each with the last number of its key that was taken. The newest time of a key does not change while one
of its records is in an open request: a repeated request has the same marks.
"""


class OutboxUnusable(PlatformError):
    """Raised when the outbox cannot be read or written; nothing is sent without it."""

    transient = True


class OutboxBusy(PlatformError):
    """Raised when another process delivers from the outbox."""

    transient = True


class RowsUnaccounted(PlatformError):
    """Raised when the rows of a partition are not those of the ledger, or not all of them are accounted for."""


@dataclass(frozen=True, kw_only=True)
class Outbox(SqliteStore):
    """The outbox of a deployment.

    Args:
        protected: Seconds for which the target honours the id of a request.
        clock: Returns the current time, in seconds since 1970.
    """

    protected: float
    clock: Callable[[], float] = time.time

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
        """Be the only process that takes, sends or resolves; the death of the process ends it.

        Raises:
            OutboxBusy: Another process does.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise OutboxBusy(
                    what="another process sends to the partner", where=str(self.path), next_step="try it again later"
                ) from error
            # While this is open, no other connection is the last one, whose close would write the log back.
            with self._file.connected():
                yield

    def sources(self) -> dict[str, str]:
        """Return the version of the source that was taken, by partition."""
        return {row["partition"]: row["source"] for row in self._file.read("SELECT partition, source FROM partitions")}

    def take(self, partition: str, source: str, rows: Iterable[Row], *, rows_in: int, private: int) -> OutboxLine:
        """Take a partition of the source: all of its rows that may be sent, in place of what it had before.

        Returns:
            The account of the partition.

        Raises:
            RowsUnaccounted: The figures do not add up; nothing was taken.
        """
        with self._file.writing() as connection:
            known = {
                row["id"]: row for row in connection.execute("SELECT * FROM records WHERE partition = ?", (partition,))
            }
            seen = set()
            for row in rows:
                identity = _digest(list(row.identity))
                seen.add(identity)
                _merge(connection, partition, identity, row, known.get(identity))
            gone = [(identity,) for identity in known.keys() - seen]
            connection.executemany("DELETE FROM records WHERE id = ? AND state = 'waiting'", gone)
            connection.executemany("UPDATE records SET gone = 1, newer = NULL WHERE id = ?", gone)
            connection.execute(
                "INSERT OR REPLACE INTO partitions VALUES (?, ?, ?, ?)", (partition, source, rows_in, private)
            )
            (line,) = _lines(connection, partition)
            if line.missing:
                raise RowsUnaccounted(
                    what=f"{line.missing} of {rows_in} rows are not accounted for",
                    where=f"{partition}, {source}",
                    next_step=Remedy("nothing of it was taken; look at the account: ", ShowLedger()),
                )
        return line

    def lines(self) -> list[OutboxLine]:
        """Return the account of each partition, in order."""
        if not self.path.exists():
            return []
        with self._file.connected() as connection:
            return _lines(connection, None)

    def due(self, *, before: str) -> list[Delivery]:
        """Return the records to send next, in the order of their times; none of a key with an open request."""
        rows = self._file.read(
            f"{_MARKED} WHERE state = 'waiting' AND partition < ? "
            "AND key NOT IN (SELECT key FROM records WHERE state = 'sending') ORDER BY records.at, records.id LIMIT ?",
            before,
            MOST_AT_ONCE,
        )
        counts: Counter[str] = Counter()
        found = []
        for row in rows:
            counts[row["key"]] += 1
            found.append(_record(row, row["taken"] + counts[row["key"]]))
        return found

    def open(self) -> list[Open]:
        """Return the requests whose answers are not known, the oldest first."""
        found = []
        for row in self._file.read("SELECT * FROM requests ORDER BY opened, id"):
            members = self._file.read(f"{_MARKED} WHERE request = ? ORDER BY key", row["id"])
            request = DeliveryRequest(
                id=row["id"], records=[_record(one, one["sequence"]) for one in members], bulk=bool(row["bulk"])
            )
            found.append(Open(request=request, opened=row["opened"], withdrawn=sum(one["gone"] for one in members)))
        return found

    def held(self) -> list[Open]:
        """Return the open requests that wait for a person: too old, or with records that may not be sent any more."""
        now = self.clock()
        return [one for one in self.open() if now - one.opened >= self.protected or one.withdrawn]

    def resolve(self, name: str, *, taken: bool) -> int:
        """Settle a request as a person has found it at the target.

        Returns:
            Number of its records.

        Raises:
            ConfigurationError: There is no such open request, or the name is empty.
        """
        every = [one.request for one in self.open()]
        # Each id begins with an empty name: it would settle whichever request is the only open one.
        found = [request for request in every if name and request.id.startswith(name)]
        if len(found) != 1:
            raise ConfigurationError(
                what=f"no single open request is called {name!r}",
                where="the outbox",
                next_step="name one of: " + (", ".join(request.id for request in every) or "there is none"),
            )
        if taken:
            self.answered(found[0], ())
        else:
            self.given_up(found[0])
        return len(found[0].records)

    def repeatable(self) -> list[DeliveryRequest]:
        """Return the open requests that are to be repeated."""
        held = {one.request.id for one in self.held()}
        return [one.request for one in self.open() if one.request.id not in held]

    def opened(self, records: Sequence[Delivery], *, bulk: bool) -> DeliveryRequest:
        """Note that records are about to be sent."""
        # `open` reads them in this order again: a repeated request has to have the same bytes.
        request = DeliveryRequest(id=str(uuid.uuid4()), records=sorted(records, key=lambda one: one.key), bulk=bulk)
        with self._file.writing() as connection:
            connection.execute("INSERT INTO requests VALUES (?, ?, ?)", (request.id, bulk, self.clock()))
            connection.executemany(
                "UPDATE records SET state = 'sending', request = ?, sequence = ? WHERE id = ?",
                [(request.id, record.sequence, record.id) for record in request.records],
            )
        return request

    def answered(self, request: DeliveryRequest, failed: Collection[int]) -> None:
        """Note what the target has taken of a request; the failed records wait again."""
        taken = [(one.id,) for index, one in enumerate(request.records) if index not in failed]
        with self._file.writing() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO keys "
                "SELECT key, records.sequence, max(records.at, coalesce(keys.at, records.at)) "
                "FROM records LEFT JOIN keys USING (key) WHERE id = ? AND state = 'sending'",
                taken,
            )
            # What the target has is not kept a second time.
            connection.executemany(
                "UPDATE records SET state = 'delivered', request = NULL, payload = NULL WHERE id = ?", taken
            )
            _wait_again(connection, [request.records[index].id for index in sorted(failed)])
            connection.execute("DELETE FROM requests WHERE id = ?", (request.id,))

    def given_up(self, request: DeliveryRequest) -> None:
        """Note that nothing of a request was taken; its records wait again."""
        with self._file.writing() as connection:
            _wait_again(connection, [record.id for record in request.records])
            connection.execute("DELETE FROM requests WHERE id = ?", (request.id,))

    def forget(self, keys: Iterable[str], *, before: Callable[[Forgotten], None] = lambda _: None) -> Forgotten:
        """Delete all records of some keys, as if their rows had never been taken.

        Returns:
            What was deleted; nothing while one of them is in an open request, which would not be repeatable any more.
        """
        wanted = [(key,) for key in sorted(set(keys))]
        if not self.path.exists():
            return Forgotten()
        with self._file.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("CREATE TEMP TABLE IF NOT EXISTS forgotten (key TEXT PRIMARY KEY)")
            connection.executemany("INSERT OR IGNORE INTO forgotten VALUES (?)", wanted)
            chosen = "key IN (SELECT key FROM forgotten)"
            counts = dict(
                connection.execute(f"SELECT state, count(*) FROM records WHERE {chosen} GROUP BY 1").fetchall()
            )
            found = Forgotten(
                records=sum(counts.values()), delivered=counts.get("delivered", 0), open=counts.get("sending", 0)
            )
            if not found.open:
                before(found)
                connection.execute(
                    "UPDATE partitions SET rows_in = rows_in - (SELECT count(*) FROM records "
                    f"WHERE records.partition = partitions.partition AND gone = 0 AND {chosen})"
                )
                connection.execute(f"DELETE FROM records WHERE {chosen}")
                connection.execute(f"DELETE FROM keys WHERE {chosen}")
        return found


def _merge(connection: sqlite3.Connection, partition: str, identity: str, row: Row, known: sqlite3.Row | None) -> None:
    payload = json.dumps(row.payload, sort_keys=True, separators=(",", ":"))
    digest = _digest([row.key, payload])
    if known is None or known["state"] == "waiting":
        if known is None or known["digest"] != digest:
            connection.execute(
                "INSERT OR REPLACE INTO records (id, partition, key, at, digest, payload, state) "
                "VALUES (?, ?, ?, ?, ?, ?, 'waiting')",
                (identity, partition, row.key, row.at, digest, payload),
            )
        return
    newer = None if known["digest"] == digest else json.dumps([row.key, digest, payload])
    connection.execute("UPDATE records SET newer = ?, gone = 0 WHERE id = ?", (newer, identity))


def _wait_again(connection: sqlite3.Connection, identities: Sequence[str]) -> None:
    for identity in identities:
        (row,) = connection.execute("SELECT newer, gone FROM records WHERE id = ?", (identity,))
        if row["gone"]:
            connection.execute("DELETE FROM records WHERE id = ?", (identity,))
            continue
        connection.execute(
            "UPDATE records SET state = 'waiting', request = NULL, sequence = NULL WHERE id = ?", (identity,)
        )
        if row["newer"]:
            connection.execute(
                "UPDATE records SET key = ?, digest = ?, payload = ?, newer = NULL WHERE id = ?",
                (*json.loads(row["newer"]), identity),
            )


def _lines(connection: sqlite3.Connection, partition: str | None) -> list[OutboxLine]:
    chosen = "(? IS NULL OR partition = ?)"
    counted = connection.execute(
        "SELECT partition, state, gone, count(*) AS rows, count(newer) AS newer "
        f"FROM records WHERE {chosen} GROUP BY 1, 2, 3",
        (partition, partition),
    ).fetchall()
    states: dict[str, Counter[str]] = {}
    others: dict[str, Counter[str]] = {}
    for row in counted:
        if row["gone"]:
            others.setdefault(row["partition"], Counter())["withdrawn"] += row["rows"]
        else:
            states.setdefault(row["partition"], Counter())[row["state"]] += row["rows"]
            others.setdefault(row["partition"], Counter())["corrected"] += row["newer"]
    return [
        OutboxLine(
            partition=row["partition"],
            source=row["source"],
            rows_in=row["rows_in"],
            private=row["private"],
            states=dict(states.get(row["partition"], {})),
            corrected=others.get(row["partition"], Counter())["corrected"],
            withdrawn=others.get(row["partition"], Counter())["withdrawn"],
        )
        for row in connection.execute(
            f"SELECT * FROM partitions WHERE {chosen} ORDER BY partition", (partition, partition)
        )
    ]


def _record(row: sqlite3.Row, sequence: int) -> Delivery:
    return Delivery(
        id=row["id"],
        key=row["key"],
        sequence=sequence,
        payload=row["payload"],
        correction=bool(row["correction"]),
    )


def _digest(values: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
