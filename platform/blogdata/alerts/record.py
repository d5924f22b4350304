"""The record of alerts: what each channel knows, what was sent, and which channels fail, in one SQLite file.

A message is recorded after its channel has taken it. A process that dies between the two sends it again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from blogdata.alerts.alert import Alert, Message
from blogdata.alerts.channel import ChannelFailed
from blogdata.alerts.standing import Told
from blogdata.durable.sqlite_file import SqliteStore
from blogdata.errors import PlatformError
from blogdata.errors.severity import Severity

_KEPT_MESSAGES = 10_000
_SCHEMA = """
CREATE TABLE told (
    channel TEXT, identity TEXT, severity TEXT, owner TEXT, title TEXT, text TEXT, next_step TEXT,
    began REAL, sent REAL, sent_severity TEXT, sends INTEGER, absent REAL, ended REAL, returns INTEGER,
    PRIMARY KEY (channel, identity)
);
CREATE TABLE messages (
    number INTEGER PRIMARY KEY, at REAL, channel TEXT, id TEXT, subject TEXT,
    begun INTEGER, standing INTEGER, ended INTEGER
);
CREATE TABLE failures (
    channel TEXT PRIMARY KEY, since REAL, at REAL, tries INTEGER, what TEXT, place TEXT, next_step TEXT
);
"""
_ALERT = [field.name for field in fields(Alert)]
_TOLD = [*_ALERT, *(field.name for field in fields(Told) if field.name != "alert")]


class RecordUnusable(PlatformError):
    """The record of alerts cannot be read or written."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A message that a channel has taken.

    Args:
        at: When, in seconds since 1970.
        channel: Name of the channel.
        identity: The message's identity.
        subject: Its subject.
        begun: Number of new alerts in it.
        standing: Number of alerts that still hold.
        ended: Number of alerts that ended.
    """

    at: float
    channel: str
    identity: str
    subject: str
    begun: int
    standing: int
    ended: int


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a channel has not taken the last messages.

    Args:
        channel: Name of the channel.
        since: When it failed first, in seconds since 1970.
        at: When it was last tried.
        tries: How often it was tried.
        error: The last error.
    """

    channel: str
    since: float
    at: float
    tries: int
    error: ChannelFailed


class AlertRecord(SqliteStore):
    """The record of a deployment."""

    schema = _SCHEMA
    busy_seconds = 30.0
    unusable = RecordUnusable
    called = "the record of alerts"
    remedy = (
        "check the disk and the file's permissions; if it is damaged, move it away: what stands is then sent once more"
    )

    def known(self, channel: str) -> dict[str, Told]:
        """Return what a channel knows, by the identity of the alert."""
        rows = self._file.read(f"SELECT {', '.join(_TOLD)} FROM told WHERE channel = ?", channel)
        return {row["identity"]: _told(row) for row in rows}

    def keep(self, channel: str, known: Mapping[str, Told]) -> None:
        """Replace what a channel knows."""
        with self._file.writing() as connection:
            connection.execute("DELETE FROM told WHERE channel = ?", (channel,))
            _insert(connection, channel, known.values())

    def taken(self, channel: str, message: Message, told: Iterable[Told], now: float) -> None:
        """Record in one transaction that a channel has taken a message.

        Args:
            channel: Name of the channel.
            message: The message.
            told: What the channel knows by it.
            now: Current time, in seconds since 1970.
        """
        counts = (len(message.begun), len(message.standing), len(message.ended))
        with self._file.writing() as connection:
            _insert(connection, channel, told)
            connection.execute(
                "INSERT INTO messages (at, channel, id, subject, begun, standing, ended) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (now, channel, message.identity, message.subject, *counts),
            )
            connection.execute("DELETE FROM failures WHERE channel = ?", (channel,))
            connection.execute(
                "DELETE FROM messages WHERE number <= (SELECT max(number) FROM messages) - ?", (_KEPT_MESSAGES,)
            )

    def failed(self, channel: str, error: ChannelFailed, now: float) -> None:
        """Record that a channel has failed."""
        with self._file.writing() as connection:
            connection.execute(
                "INSERT INTO failures VALUES (?, ?, ?, 1, ?, ?, ?) ON CONFLICT (channel) DO UPDATE SET "
                "at = excluded.at, tries = tries + 1, what = excluded.what, place = excluded.place, "
                "next_step = excluded.next_step",
                (channel, now, now, error.what, error.where, error.next_step),
            )

    def failures(self) -> dict[str, Failure]:
        """Return the channels that fail, by name."""
        return {
            row["channel"]: Failure(
                channel=row["channel"],
                since=row["since"],
                at=row["at"],
                tries=row["tries"],
                error=ChannelFailed(what=row["what"], where=row["place"], next_step=row["next_step"]),
            )
            for row in self._file.read("SELECT * FROM failures ORDER BY channel")
        }

    def messages(self, newest: int) -> Sequence[Sent]:
        """List the newest messages that channels have taken, the newest first."""
        columns = "at, channel, id AS identity, subject, begun, standing, ended"
        return [
            Sent(**row)
            for row in self._file.read(f"SELECT {columns} FROM messages ORDER BY number DESC LIMIT ?", newest)
        ]

    def forget_others(self, channels: Iterable[str]) -> None:
        """Remove what is kept about channels that no longer exist."""
        names = list(channels)
        others = f"channel NOT IN ({', '.join('?' * len(names))})"
        with self._file.writing() as connection:
            connection.execute(f"DELETE FROM told WHERE {others}", names)
            connection.execute(f"DELETE FROM failures WHERE {others}", names)


def _insert(connection: sqlite3.Connection, channel: str, known: Iterable[Told]) -> None:
    each = [{**vars(told.alert), **vars(told)} for told in known]
    connection.executemany(
        f"INSERT OR REPLACE INTO told (channel, {', '.join(_TOLD)}) VALUES (?{', ?' * len(_TOLD)})",
        [(channel, *(values[name] for name in _TOLD)) for values in each],
    )


def _told(row: sqlite3.Row) -> Told:
    values = {**row}
    for name in ("severity", "sent_severity"):
        values[name] = None if values[name] is None else Severity(values[name])
    alert = Alert(**{name: values.pop(name) for name in _ALERT})
    return Told(alert=alert, **values)
