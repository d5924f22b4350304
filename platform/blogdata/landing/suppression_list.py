"""Forgotten persons: their lines are overwritten in the landed files before anything reads them (:func:`erase_known`).

So a person comes back by no full delivery, late line, replay, backfill or correction of a dead letter, and no landed
file has a line of that person; all tables below are right by construction.

The suppression list has who was forgotten, as keyed hashes with a time, and no value of a person. Without the key,
which is a secret of its own, nobody can test whether somebody is on it. Whoever registers again after the time is let
in again: from the registration on, by the values of the new row. If the registration that was forgotten lies in the
future, it is the time: that row does not bring itself back. An address counts until the moment of the erasure only.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from blogdata.errors import PlatformError
from blogdata.errors.remedies import GoOnForgetting, Remedy
from blogdata.files import SqliteStore, locked
from blogdata.landing import in_place_overwriter, log_splitter
from blogdata.landing.in_place_overwriter import Goes
from blogdata.landing.landed_formats import content, digested
from blogdata.landing.landed_links import leading_out
from blogdata.landing.landed_persons import Identifiers, Named, Reader, Values, spelled
from blogdata.landing.lines import Bounds, faults_of
from blogdata.landing.log_splitter import LOGS
from blogdata.landing.sizes import LandedSize, judge_all
from blogdata.operate import secrets
from blogdata.operate.config import Settings, load

SECRET = "suppression"
FILE = "suppressed.sqlite"
LOCK = ".erasing.lock"
"""Name of the file in the home by which one process overwrites landed files at a time."""
SPLITTING = ".splitting.lock"
"""Name of the file in the home by which no line of an access log is overwritten while logs are split."""
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
        """Return the keyed hashes of all values by which persons are known, as sorted hex digits."""
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


def splitting(settings: Settings) -> AbstractContextManager[None]:
    """Keep others from overwriting lines of access logs: one that is being split would be refused from then on."""
    return locked(settings.home / SPLITTING)


def erase_by_home(home: Path, landing: Path, files: Iterable[Path]) -> None:
    """Overwrite as :func:`erase_known`, in a worker: settings have secrets, so they are read there and not sent."""
    present = [file for file in files if leading_out(file, landing) is None and file.is_file()]
    erase_known(load(overrides={"BLOGDATA_HOME": str(home)}), landing, present)


def erase_known(settings: Settings, landing: Path, files: Sequence[Path]) -> Mapping[Path, int]:
    """Overwrite the lines of all persons on the suppression list in landed files; return their number by file."""
    if not files or SuppressionList.of(settings).suppressed() is None:
        return {}
    with locked(settings.home / LOCK):
        # Read again: somebody may have been forgotten while this process waited.
        known = SuppressionList.of(settings)
        suppressed = known.suppressed()
        assert suppressed is not None
        read = [
            file
            for file, size in zip(files, judge_all(files, landing, Bounds.of(settings)), strict=True)
            if isinstance(size, LandedSize)
        ]
        # A hidden copy, of a log that is about to land, is not split.
        logs = [file for file in read if _log_of(file, landing) is not None and not file.name.startswith(".")]
        counts: dict[Path, int] = {}
        with splitting(settings) if logs else nullcontext():
            for file in read:
                goes, log = partial(suppressed.gone, Reader(file, landing, settings.logs)), _log_of(file, landing)
                with faults_of(file):
                    if lines := in_place_overwriter.overwrite(file, goes) if log is None else _erase_in_log(log, goes):
                        counts[file] = lines
        known.let_in(suppressed.returned)
    return counts


def _log_of(file: Path, landing: Path) -> Path | None:
    """Return the whole access log that a file is: of a link to one, such as to the current one, the log itself."""
    folder, target = landing / LOGS, file.resolve()
    if target.parent == folder.resolve():
        return folder / target.name
    return file if file.parent == folder else None


def _erase_in_log(log: Path, goes: Goes) -> int:
    """Overwrite lines of a whole access log, and renew the digest of what was taken from it.

    The new digest is there before the new content, beside the old one: at any moment one of them is that of the log.
    """
    taken, was_done = log_splitter.progress_of(log), log_splitter.is_done(log)

    def note(staged: Path) -> None:
        if taken is not None:
            log_splitter.write_progress(log, replace(taken, erased_sha256=_digest(staged, taken.covered)))
            in_place_overwriter.sync(log_splitter.progress_file(log))
            in_place_overwriter.sync(log_splitter.progress_file(log).parent)

    count = in_place_overwriter.overwrite(log, goes, before=note)
    noted = log_splitter.progress_of(log)
    if noted is not None and noted.erased_sha256 is not None and _digest(log, noted.covered) == noted.erased_sha256:
        renewed = replace(noted, sha256=noted.erased_sha256, erased_sha256=None)
        if was_done:
            state = log.stat()
            renewed = replace(renewed, source_size=state.st_size, source_mtime_ns=state.st_mtime_ns)
        log_splitter.write_progress(log, renewed)
    return count


def _digest(log: Path, covered: int) -> str:
    digest = hashlib.sha256()
    with content(log) as file:
        digested(file, covered, digest)
    return digest.hexdigest()
