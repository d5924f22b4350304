"""Who is forgotten: all that some persons are known by, found in the landed lines from what was given.

From a user follow all logins, e-mails and visits that any line names together with the user, in any version of the user
and in lines that cannot be read, too. From a login, an e-mail or a visit follows the user. Nothing follows from an
address, which many share, and nothing follows to another user: a value that two users have had is refused by name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from blogdata.errors import ConfigurationError, PlatformError
from blogdata.patterns.ingestion import erased_lines
from blogdata.patterns.ingestion.landed_entries import is_data
from blogdata.patterns.ingestion.landed_lines import Bounds, faults_of, judge_all
from blogdata.suppression.identifiers import Identifiers
from blogdata.suppression.landed_persons import Kind, Reader, Values, kind_of

TABLES = ("users", "visits", "ads", "access_logs")
"""Folders of the landing zone whose lines may be those of a person."""
USERS = "user_ids"
OF_A_USER = ("logins", "emails", "visit_ids")
_OPTIONS = {"logins": "--login", "emails": "--email", "visit_ids": "--visit"}
_NAMED = 5


class SharedValue(PlatformError):
    """Raised when a value leads to several users: whoever it is not about would lose rows."""

    exit_code: ClassVar[int] = 2


@dataclass(frozen=True, kw_only=True)
class Found:
    """Who was found.

    Args:
        shared: Values of theirs that other users have had, too; they are not among those of `persons`.
    """

    persons: Identifiers
    shared: frozenset[str]
    unknown: frozenset[str]


def landed_files(landing: Path, bounds: Bounds) -> tuple[list[Path], list[PlatformError]]:
    """List the landed files whose lines may be those of a person, and why some of them cannot be read.

    Raises:
        LinkRefused: A file lies behind a link that leads out of the landing zone.
    """
    files = [
        file
        for table in TABLES
        for file in sorted((landing / table).rglob("*"))
        if file.is_file() and all(is_data(part) for part in file.relative_to(landing).parts)
    ]
    sizes = judge_all(files, landing, bounds)
    readable = [file for file, size in zip(files, sizes, strict=True) if not isinstance(size, PlatformError)]
    return readable, [size for size in sizes if isinstance(size, PlatformError)]


def find(landing: Path, files: Sequence[Path], given: Identifiers, *, shared_stays: bool = False) -> Found:
    """Find all that persons are known by.

    Raises:
        SharedValue: A given login, e-mail or visit leads to several users, who are not all given; or a value that
            follows from a user is that of another one, too.
    """
    rows = [file for file in files if kind_of(file, landing) is not Kind.LOG]
    asked = {kind: getattr(given, kind) for kind in OF_A_USER}
    owners, seen = _owners(_fields(landing, rows), asked, given.user_ids)
    for (kind, value), several in owners.items():
        if len(several) > 1 and not several <= given.user_ids:
            raise _ambiguous(kind, value, several)
    users = given.user_ids.union(*owners.values())
    theirs: dict[str, set[str]] = {kind: set(values) for kind, values in asked.items()}
    for fields in _fields(landing, rows):
        if fields.get(USERS, frozenset()) & users:
            for kind in OF_A_USER:
                theirs[kind] |= fields.get(kind, frozenset())
    owners, _ = _owners(_fields(landing, rows), theirs, frozenset())
    shared = {key: found - users for key, found in owners.items() if found - users}
    if shared and not shared_stays:
        raise _shared(shared)
    kept = {
        kind: frozenset(value for value in values if (kind, value) not in shared) for kind, values in theirs.items()
    }
    return Found(
        persons=replace(given, user_ids=users, **kept),
        shared=frozenset(value for _, value in shared),
        unknown=given.values() - given.addresses - seen,
    )


def _fields(landing: Path, files: Iterable[Path]) -> Iterator[Values]:
    for file in files:
        reader = Reader(file, landing)
        with faults_of(file):
            for offset, line in erased_lines.lines(file):
                raw = erased_lines.raw_of(offset, line)
                if raw and not erased_lines.is_erased(raw):
                    yield reader.named(offset, raw).fields


def _owners(
    lines: Iterable[Values], asked: Mapping[str, Iterable[str]], users: frozenset[str]
) -> tuple[dict[tuple[str, str], set[str]], set[str]]:
    """Find the users of some values, by kind and value; and which of the values and users there are."""
    wanted = {kind: frozenset(values) for kind, values in asked.items()}
    owners: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    seen: set[str] = set()
    for fields in lines:
        of_line = fields.get(USERS, frozenset())
        seen |= of_line & users
        for kind, values in wanted.items():
            for value in fields.get(kind, frozenset()) & values:
                seen.add(value)
                owners[kind, value] |= of_line
    return owners, seen


def _ambiguous(kind: str, value: str, users: Iterable[str]) -> SharedValue:
    return SharedValue(
        what=f"{value} was that of several users: {_listed(users)}",
        where=_OPTIONS[kind],
        next_step="name the users to forget instead, by their ids",
    )


def _shared(shared: Mapping[tuple[str, str], Iterable[str]]) -> SharedValue:
    named = [f"{value} ({_OPTIONS[kind]}), also of {_listed(users)}" for (kind, value), users in sorted(shared.items())]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return SharedValue(
        what=f"values of these persons were those of other users, too: {'; '.join(named[:_NAMED])}{more}",
        where="the landed lines",
        next_step="name these users, too, if they are the same persons; or add --shared-stays: then rows are found by "
        "all other values, and these ones stay",
    )


def _listed(users: Iterable[str]) -> str:
    names = sorted(users)
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def given_in(text: str, where: str) -> Identifiers:
    """Read persons from the lines of a file: a user id, or `login:…`, `email:…`, `visit:…`, `address:…`; `#` comments.

    Raises:
        ConfigurationError: No line names a person.
    """
    kinds = {"user": USERS, "login": "logins", "email": "emails", "visit": "visit_ids", "address": "addresses"}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for line in map(str.strip, text.splitlines()):
        name, colon, value = line.partition(":")
        if line and not line.startswith("#"):
            is_named = colon and name in kinds
            found[kinds[name] if is_named else USERS].add(value.strip() if is_named else line)
    if not found:
        raise ConfigurationError(what="nobody is named", where=where, next_step="write one person a line")
    return Identifiers(**{kind: frozenset(values) for kind, values in found.items()})
