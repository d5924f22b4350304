"""The suppression list: who was forgotten, as keyed hashes with a time, so that no delivery brings a person back.

It has no value of a person. Without the key, which is a secret of its own, nobody can test whether somebody is on it.
Whoever registers again after the time is let in again: from the registration on, by the values of the new row. Of a
registration that lies in the future already, that is the time: the row that was forgotten does not bring itself back.
An address counts until the moment of the erasure only.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from blogdata.errors import PlatformError
from blogdata.errors.remedies import GoOnForgetting, Remedy
from blogdata.files import SqliteStore
from blogdata.landing.landed_persons import Identifiers, Named, Reader, Values, spelled
from blogdata.operate import secrets
from blogdata.operate.config import Settings

SECRET = "suppression"
FILE = "suppressed.sqlite"
_CHECK = ("key", "")
"""Hashed into every list, to know its key by."""
_BYTES = 16


class ListUnusable(PlatformError):
    """Raised when the suppression list cannot be read or written: nothing that has landed is taken in without it."""


class Since(NamedTuple):
    """From when to when a value counts as that of a forgotten person; seconds since 1970, None for no end."""

    forgotten: float
    returned: float | None


@dataclass(frozen=True, kw_only=True)
class SuppressionList(SqliteStore):
    """The list of a deployment."""

    settings: Settings

    schema = "CREATE TABLE suppressed (hash BLOB PRIMARY KEY, forgotten REAL NOT NULL, returned REAL) WITHOUT ROWID"
    busy_seconds = 60.0
    unusable = ListUnusable
    called = "the list of persons who were forgotten"
    remedy = "bring the file back from a backup: without it the next delivery would bring these persons back"

    @classmethod
    def of(cls, settings: Settings) -> SuppressionList:
        return cls(path=settings.home / FILE, settings=settings)

    def add(self, persons: Identifiers, at: float, registered: float | None = None) -> None:
        """Add persons, or forget them anew; on the disk when it returns.

        `at`: when they were forgotten, seconds since 1970; `registered`: the newest registration of them that landed.
        """
        # The file comes before the key: a key without a row says that the list was lost, or that this was cut off.
        with self.connected():
            key = self._key()
        until = max(at, at if registered is None else registered)
        addresses = Identifiers(addresses=persons.addresses)
        times = dict.fromkeys((*_hashes(key, persons), _hashed(key, *_CHECK)), until)
        rows = [*(times | dict.fromkeys(_hashes(key, addresses), at)).items()]
        with self.writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO suppressed VALUES (?, ?, NULL)", rows)

    def suppressed(self) -> Suppressed | None:
        """Read the list; None if nobody was forgotten, which costs no more than a look for the file and the key."""
        rows = self.rows("SELECT * FROM suppressed")
        secret = secrets.pointer(self.settings, SECRET)
        has_key = bool(secret.versions())
        if not rows and not has_key:
            return None
        known = {row["hash"]: Since(row["forgotten"], row["returned"]) for row in rows}
        if not has_key or _hashed(self._key(), *_CHECK) not in known:
            raise ListUnusable(
                what="the list of persons who were forgotten is gone, or its key is, or they do not belong together",
                where=f"{self.path}, {secret.file()}",
                next_step=Remedy(
                    "if an erasure was interrupted: ",
                    GoOnForgetting(),
                    "; otherwise bring both back from a backup: without them the next delivery brings the persons back",
                ),
            )
        return Suppressed(key=self._key(), known=known)

    def hashes(self, persons: Identifiers) -> tuple[str, ...]:
        """Return the keyed hashes of all that persons are known by, as hex digits, in order."""
        return tuple(sorted(hashed.hex() for hashed in _hashes(self._key(), persons)))

    def let_in(self, returned: Mapping[bytes, float]) -> None:
        """Record by hash who has registered again, and when, in seconds since 1970."""
        lines = [(at, at, hashed) for hashed, at in returned.items()]
        with self.writing() as connection:
            connection.executemany(
                "UPDATE suppressed SET returned = ? WHERE coalesce(returned, 9e99) > ? AND hash = ?", lines
            )

    def _key(self) -> bytes:
        return secrets.read(self.settings, SECRET).reveal().encode()


class Suppressed:
    """The list in memory: decides about lines, and notes who has registered again."""

    def __init__(self, *, key: bytes, known: Mapping[bytes, Since]) -> None:
        self._key = key
        self._known = known
        self.returned: dict[bytes, float] = {}

    @classmethod
    def of(cls, persons: Identifiers, key: bytes) -> Suppressed:
        """Return what decides about the lines of persons who are not on a list yet; the key is any bytes."""
        for_ever = Since(float("inf"), None)
        return cls(key=key, known=dict.fromkeys(_hashes(key, persons), for_ever))

    def gone(self, reader: Reader, lines: Iterable[tuple[int, bytes]]) -> set[int]:
        """Return the offsets of the lines of a file that go, all parts of a line together."""
        named, of_users = reader.named(lines), reader.is_of_users
        return {offset for offsets, line in named if self.goes(line, is_of_users=of_users) for offset in offsets}

    def goes(self, line: Named, *, is_of_users: bool) -> bool:
        at = line.logged if line.at is None else line.at
        known = self._found(line.fields, at) | self._found(line.words, at)
        if not known:
            return False
        if is_of_users and line.at is not None and all(line.at > since.forgotten for since in known.values()):
            self.returned.update({hashed: min(line.at, self.returned.get(hashed, line.at)) for hashed in known})
            return False
        return not all(
            (returned := self.returned.get(hashed, since.returned)) is not None
            and line.at is not None
            and line.at >= returned
            for hashed, since in known.items()
        )

    def _found(self, values: Values, at: float | None) -> dict[bytes, Since]:
        return {
            hashed: self._known[hashed]
            for kind, named in values.items()
            for value in spelled(kind, named)
            if (hashed := _hashed(self._key, kind, value)) in self._known
            # Providers give an address to one after the other: later on, it is that of strangers.
            and (kind != "addresses" or at is None or at <= self._known[hashed].forgotten)
        }


def _hashes(key: bytes, persons: Identifiers) -> set[bytes]:
    values = ((kind, value) for kind, values in persons.by_kind().items() for value in spelled(kind, values) if value)
    return {_hashed(key, kind, value) for kind, value in values}


def _hashed(key: bytes, kind: str, value: str) -> bytes:
    return hmac.digest(key, f"{kind}\0{value}".encode("utf-8", "surrogatepass"), "sha256")[:_BYTES]
