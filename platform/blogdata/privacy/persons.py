"""Who is forgotten: all that some persons are known by, found in the landed lines from what was given.

From a user follow all logins, e-mails and visits that any line names together with the user, in any version of the user
and in lines that cannot be read, too. From a login, an e-mail or a visit follows the user. An address leads to nobody,
since many share it. A value that two users have had is refused by name, so that nobody else is erased.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from blogdata.errors import PlatformError
from blogdata.landing.landed_persons import Identifiers, Kind, Named, Reader, Values, kind_of
from blogdata.landing.lines import Bounds, faults_of, kept_lines
from blogdata.landing.readiness_marker import is_data
from blogdata.landing.sizes import judge_all
from blogdata.operate.config import LogSettings

TABLES = ("users", "visits", "ads", "access_logs")
"""Folders of the landing zone whose lines may be those of a person."""
USERS = "user_ids"
OF_A_USER = {"logins": "--login", "emails": "--email", "visit_ids": "--visit"}
"""What a user is known by, to the option that names it."""
_NAMED = 5


class SharedValue(PlatformError):
    """Raised when a value leads to several users: others would lose rows."""

    exit_code: ClassVar[int] = 2


@dataclass(frozen=True, kw_only=True)
class Match:
    persons: Identifiers
    shared: frozenset[str]
    """Values of theirs that other users have had, too; they are not among those of `persons`."""
    unknown: frozenset[str]
    """Given values that no landed line has."""


def landed_files(landing: Path, bounds: Bounds) -> tuple[list[Path], list[PlatformError]]:
    """List the landed files whose lines may be those of a person, and why some of them cannot be read."""
    files = [
        file
        for table in TABLES
        for file in sorted((landing / table).rglob("*"))
        if file.is_file() and all(is_data(part) for part in file.relative_to(landing).parts)
    ]
    sizes = judge_all(files, landing, bounds)
    readable = [file for file, size in zip(files, sizes, strict=True) if not isinstance(size, PlatformError)]
    return readable, [size for size in sizes if isinstance(size, PlatformError)]


def named_in(file: Path, landing: Path, logs: LogSettings) -> Iterator[tuple[tuple[int, ...], Named]]:
    """Read whom the lines of a landed file name, without those that are erased, with the offsets of their parts."""
    with faults_of(file):
        yield from Reader(file, landing, logs).named(line for line in kept_lines(file) if line[1])


def find(landing: Path, files: Sequence[Path], given: Identifiers, *, shared_stays: bool = False) -> Match:
    """Find all that persons are known by, unless a value is that of another user, too."""
    rows = [file for file in files if kind_of(file, landing) is not Kind.LOG]

    def fields() -> Iterator[Values]:
        return (named.fields for file in rows for _, named in named_in(file, landing, LogSettings()))

    asked = {kind: given.by_kind()[kind] for kind in OF_A_USER}
    owners = _owners(fields(), asked)
    ambiguous = {key: users for key, users in owners.items() if len(users) > 1 and not users <= given.user_ids}
    if ambiguous:
        raise _shared(ambiguous, "name the users to forget instead, by their ids")
    users = given.user_ids.union(*owners.values())
    theirs: dict[str, set[str]] = {kind: set(values) for kind, values in asked.items()}
    seen: set[str] = set()
    for values in fields():
        if of_line := values.get(USERS, frozenset()) & users:
            seen |= of_line
            for kind in OF_A_USER:
                theirs[kind] |= values.get(kind, frozenset())
    owners_of_theirs = _owners(fields(), theirs)
    shared = {key: others for key, owners in owners_of_theirs.items() if (others := owners - users)}
    if shared and not shared_stays:
        step = "name these users, too, if they are the same persons; or add --shared-stays: then rows are found by all "
        raise _shared(shared, f"{step}other values, and these ones stay")
    seen |= {value for _, value in owners}
    kept = {kind: frozenset(name for name in names if (kind, name) not in shared) for kind, names in theirs.items()}
    return Match(
        persons=replace(given, user_ids=users, **kept),
        shared=frozenset(value for _, value in shared),
        unknown=replace(given, addresses=frozenset()).values() - seen,
    )


def _owners(lines: Iterable[Values], asked: Mapping[str, Iterable[str]]) -> Mapping[tuple[str, str], set[str]]:
    """Find the users of some values, by kind and value; a value that is in no line is not among them."""
    wanted = {kind: frozenset(values) for kind, values in asked.items()}
    owners: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for fields in lines:
        for kind, values in wanted.items():
            for value in fields.get(kind, frozenset()) & values:
                owners[kind, value] |= fields.get(USERS, frozenset())
    return owners


def _shared(shared: Mapping[tuple[str, str], Iterable[str]], next_step: str) -> SharedValue:
    named = [
        f"{value} ({OF_A_USER[kind]}), of {', '.join(sorted(users)[:_NAMED])}"
        for (kind, value), users in sorted(shared.items())
    ]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return SharedValue(
        what=f"values of these persons are those of several users: {'; '.join(named[:_NAMED])}{more}",
        where="the landed lines",
        next_step=next_step,
    )
