"""Whom a landed line names: by its fields where it can be read, and otherwise by what stands in it.

A line that is one JSON object or a row of a CSV file names persons by the fields of :data:`FIELDS`, at any depth and in
any case, such as `User_ID`, also if a field comes twice, has several values, or is in a text that is JSON itself. Of a
line that cannot be read, such as one that was cut off, whatever looks like such a field counts, and any word that is a
value: of an e-mail, an address, an id of at least :data:`DISTINCTIVE` characters, or, if no field names a user, a
login. Words are also decoded from JSON's escapes, those of servers (`\\xc3\\xb6`), and percent escapes.

In a line of an access log e-mails, addresses, and long ids that are no numbers count wherever they stand. Logins, also
of several words, count where servers write them: before the time, or where a declared format or a header has them. A
path like `/archive` is none, nor is what syslog writes before a line. Parts of a line are joined as for its row.
"""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from blogdata.landing.clients import normal_form
from blogdata.landing.landed_formats import extension
from blogdata.landing.log_declarations import HEADER
from blogdata.landing.log_envelopes import Written, bare_line, body_of, decoded, entry_of
from blogdata.landing.log_formats import Misfit, formats
from blogdata.operate.config import LogSettings

FIELDS = {"user_id": "user_ids", "visit_id": "visit_ids", "login": "logins", "email": "emails", "ip": "addresses"}
"""Field of a landed row, in lower case, to what its value is of a person; a test holds it against the contracts."""
OF_USERS = {**FIELDS, "id": "user_ids"}
"""The same for delivered users."""
_OF_LOGS = {
    **FIELDS,
    "user": "logins",
    "remote_user": "logins",
    "username": "logins",
    "clientusername": "logins",
    "remote_addr": "addresses",
}
_CADDYS_LOGIN = {"user_id": "logins"}
_TIMES = ("event_time", "display_time")
_TIMES_OF_LOGS = ("time", "time_iso8601", "time_local", "timestamp", "@timestamp", "timeStamp", "StartUTC", "ts")
_CLF = re.compile(r"\[(\d\d/[A-Z][a-z]{2}/\d{4}(?::\d\d){3})(?:\.\d{1,6})?( [+-]\d{4})?\]")
_ISO = re.compile(r"\b(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\s\],\"]*)")
REGISTERED = "registered_datetime"
DISTINCTIVE = 8
"""Least characters of an id that is taken for one wherever it stands."""
_SHORTEST_LOGIN = 4
_FIELD = r'"({})"\s*:\s*(?:"((?:[^"\\]|\\.)*)"|(-?\d+)(?=\s*[,}}\]]))'
_WORD = re.compile(r"""[^\s\0\ufeff"'<>()\[\]{},;|&=?#/\\]+""")
_MAIL = re.compile(r"""(?<![^\s"<>()\[\]{},:;|&=?#/\\])[^\s"<>()\[\]{},:;|&=?#/\\]+@[^\s"'<>()\[\]{},:;|&=?#/\\]+""")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_OCTETS = re.compile(r"(?:\\x[0-9a-fA-F]{2})+")
_QUOTED_LOGIN = re.compile(r'[^\["]*"((?:[^"\\]|\\.)*)" \[')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_BETWEEN = re.compile(r"[\s\"'=|;:()\[\],]+")
_MOST_NAMES = 8
"""Words of which the login of one person consists, at most."""

Values = Mapping[str, frozenset[str]]
"""Names of the fields of :class:`Identifiers` to values."""


@dataclass(frozen=True)
class Identifiers:
    """What persons are known by: the values that an erasure has to remove."""

    user_ids: frozenset[str] = frozenset()
    logins: frozenset[str] = frozenset()
    emails: frozenset[str] = frozenset()
    visit_ids: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()

    def by_kind(self) -> dict[str, frozenset[str]]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def values(self) -> frozenset[str]:
        return frozenset().union(*(spelled(kind, values) for kind, values in self.by_kind().items())) - {""}


def spelled(kind: str, values: Iterable[str]) -> frozenset[str]:
    """Return values of one kind as they are, and addresses in their normal form as well: `2001:DB8::1`."""
    values = frozenset(values)
    return values.union(filter(None, map(normal_form, values))) if kind == "addresses" else values


class Kind(Enum):
    USERS = "users"
    EVENTS = "events"
    LOG = "log"


@dataclass(frozen=True, kw_only=True)
class Named:
    """Whom a line names by its fields, and by words that stand anywhere in it."""

    fields: Values
    words: Values
    at: float | None
    """When the event happened or the user registered."""
    logged: float | None = None
    """When the request was logged. It lets nobody in again: a log is recognized only if the same lines are erased."""


def kind_of(file: Path, landing: Path) -> Kind:
    table = file.relative_to(landing).parts[0]
    if table == "users":
        return Kind.USERS
    return Kind.LOG if table == "access_logs" or extension(file.name) == "log" else Kind.EVENTS


class _Object(list[Any]):
    """The values of an object of JSON."""


class Reader:
    def __init__(self, file: Path, landing: Path, logs: LogSettings) -> None:
        self._kind = kind_of(file, landing)
        known = formats(logs.formats, logs.zone)
        self._log = known.of_log() if self._kind is Kind.LOG else None
        # The key of the user in an object that is declared.
        users = (path for log_format in known.objects for path in log_format.paths.get("user", ()))
        of_own = {str(path[-1]).lower(): "logins" for path in users}
        self._names = {Kind.USERS: OF_USERS, Kind.EVENTS: FIELDS, Kind.LOG: {**_OF_LOGS, **of_own}}[self._kind]
        keys = "|".join(map(re.escape, {**_OF_LOGS, **OF_USERS, **of_own}))
        self._field = re.compile(_FIELD.format(keys), re.IGNORECASE)
        self._header: list[str] | None = None
        self._is_csv = extension(file.name) == "csv"

    @property
    def is_of_users(self) -> bool:
        return self._kind is Kind.USERS

    def named(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[tuple[int, ...], Named]]:
        """Return whom the lines of a file name, from its beginning, each by its offset and bytes.

        Returns:
            Whom a line names, with its offset; of one in parts, with those of all of them, when it ends.
        """
        log = self._log
        for offset, raw in lines:
            text = decoded(raw) if log else None
            if log and text and (entry := entry_of(text)):
                yield from map(self._of_written, log.joined(entry, offset)[1])
                continue
            if log and text and HEADER in text:
                log.read(text)
            yield (offset,), self._of_line(offset, raw)
        yield from map(self._of_written, log.begun.values() if log else ())

    def _of_written(self, line: Written) -> tuple[tuple[int, ...], Named]:
        return line.places, self._of_line(line.places[0], line.text.encode(errors="surrogateescape"))

    def _of_line(self, offset: int, raw: bytes) -> Named:
        text = raw.decode("utf-8", "replace")
        if self._is_csv:
            return self._of_csv(offset, text)
        if self._kind is not Kind.LOG:
            return self._of_json(raw, text)
        assert self._log is not None
        body, request = body_of(bare_line(text)), self._log.read(text, within=True)
        if body.lstrip().startswith("{"):
            return self._of_json(body, text)
        users = [form for user in self._log.users(text) for form in _forms(user)]
        words = _words(
            text, logins=(*chain(*map(_before_time, _forms(body))), *chain(*map(_of_user, users))), is_log=True
        )
        # Also a name, or an address of IPv6 with a port behind it, as that of a line that was cut off may be.
        cut = {word.rpartition(":")[0] for word in words["addresses"] if word.count(":") > 2}
        has_client = not isinstance(request, Misfit) and request[1].keys() > {"time"}
        client = cut if isinstance(request, Misfit) else {request[1]["address"]} if has_client else set[str]()
        words = {**words, "addresses": words["addresses"] | client}
        return Named(fields={}, words=words, at=None, logged=_logged(text))

    def _of_json(self, raw: str | bytes, text: str) -> Named:
        names = self._names
        pairs: list[tuple[str, Any]] = []

        def kept(members: list[tuple[str, Any]]) -> _Object:
            pairs.extend(members)
            return _Object(value for _, value in members)

        whole = isinstance(_parsed(raw, kept), _Object)
        plain = dict(pair for pair in pairs if isinstance(pair[1], str))
        # What is found in a text is looked at in turn.
        for _, value in pairs:
            if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
                _parsed(value, kept)
        if not whole:
            # A value with an escape is found once more without it.
            matches = (match for form in _forms(text) for match in self._field.findall(form))
            pairs += [(name, value or number) for name, value, number in matches if "\\" not in value]
            names = {**OF_USERS, **names}
        fields = _fields(pairs, names, _CADDYS_LOGIN if self._kind is Kind.LOG else {})
        times = {Kind.USERS: (REGISTERED,), Kind.EVENTS: _TIMES, Kind.LOG: _TIMES_OF_LOGS}[self._kind]
        at = next((plain[name] for name in times if name in plain), None)
        if whole and self._kind is not Kind.LOG:
            return Named(fields=fields, words={}, at=_time(at))
        # Of a line that names a user, a word such as `mobile` may be a login by chance.
        is_anybodys = self._kind is not Kind.LOG and not fields.get("user_ids")
        return Named(
            fields=fields,
            words=_words(text, logins=None if is_anybodys else (), is_log=self._kind is Kind.LOG),
            at=None if self._kind is Kind.LOG else _time(at),
            logged=_logged(f"[{at}]") if self._kind is Kind.LOG else None,
        )

    def _of_csv(self, offset: int, text: str) -> Named:
        try:
            row = next(csv.reader([text.rstrip("\r")], delimiter=";"), [])
        except csv.Error:
            # A return within the line, or a value of more than 128 KiB.
            row = []
        if not offset and not OF_USERS.keys().isdisjoint(names := [name.strip().lower() for name in row]):
            self._header = names
            return Named(fields={}, words={}, at=None)
        # Without a header that names persons, as with other separators, nothing of the file can be read.
        if self._header is None or len(row) != len(self._header):
            return Named(fields={}, words=_words(text, logins=None), at=None)
        pairs = list(zip(self._header, row, strict=True))
        return Named(fields=_fields(pairs, OF_USERS), words={}, at=_time(dict(pairs).get(REGISTERED)))


def _fields(pairs: list[tuple[str, Any]], *names: Mapping[str, str]) -> Values:
    values: defaultdict[str, set[str]] = defaultdict(set)
    for name, value in pairs:
        for what in {known[name.lower()] for known in names if name.lower() in known}:
            values[what].update({*_texts(value)} - {""})
    return {what: frozenset(values) for what, values in values.items()}


def _texts(value: object) -> Iterator[str]:
    """Return the texts and whole numbers that a value is, or that are anywhere in it."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, list):
            left += item
        elif isinstance(item, str | int) and not isinstance(item, bool):
            yield str(item)


def _parsed(text: str | bytes, kept: Callable[[list[tuple[str, Any]]], _Object]) -> object:
    try:
        return json.loads(text, object_pairs_hook=kept)
    except (ValueError, RecursionError):
        return None


def _words(text: str, *, logins: tuple[str, ...] | None, is_log: bool = False) -> Values:
    """Return the words of a line by what they may be; `logins` None: any word may be one, unless it is a JSON key."""
    words: set[str] = set()
    for form in _forms(text):
        words.update(_MAIL.findall(form))
        for word in _WORD.findall(form):
            words.update((word, word.strip(".:"), *word.split(":")))
    # Of digits alone, a word of a request is a day or a number of an article.
    long = frozenset(word for word in words if len(word) >= DISTINCTIVE and not (is_log and word.isdecimal()))
    named = {word for word in words if len(word) >= _SHORTEST_LOGIN} - set(re.findall(r'"([^"\\]*)"\s*:', text))
    return {
        "emails": frozenset(word for word in words if "@" in word),
        "addresses": frozenset(word for word in words if "." in word or ":" in word),
        "user_ids": long,
        "visit_ids": long,
        "logins": frozenset(named if logins is None else logins),
    }


def _before_time(text: str) -> tuple[str, ...]:
    """Return what may be the login in a log line: before its time or its first quoted field, also of several words."""
    before = re.split(r'[\["]', text, maxsplit=1)[0].rstrip()
    starts = [match.start() for match in re.finditer(r"\S+", before)][-_MOST_NAMES:]
    quoted = _QUOTED_LOGIN.match(text)
    return (*before.split(), *(before[start:] for start in starts), *(quoted.groups() if quoted else ()))


def _of_user(text: str) -> tuple[str, ...]:
    """Return what may be the login in what a format has for the user, such as ` - "bo peep"` or `user=bo;`."""
    return (*_before_time(text), *_QUOTED.findall(text), *_BETWEEN.split(text), text.replace("+", " "))


def _forms(text: str) -> Iterator[str]:
    """Return a text as it is, without JSON's and servers' escapes, and without percent escapes besides."""
    yield text
    if "\\" in text:
        text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text).replace("\\/", "/").replace('\\"', '"')
        text = _OCTETS.sub(lambda match: bytes.fromhex(match[0].replace("\\x", "")).decode("utf-8", "replace"), text)
        yield text
    if "%" in text:
        yield unquote(text)


def _logged(line: str) -> float | None:
    """Return when a log line was written; a date without a time may be of its URL, its login or its host."""
    if match := _CLF.search(line):
        try:
            # Without an offset, the earliest instant that it may be.
            return datetime.strptime(match[1] + (match[2] or " +1400"), "%d/%b/%Y:%H:%M:%S %z").timestamp()
        except ValueError:
            return None
    match = _ISO.search(line)
    return _time(match[1]) if match else None


def _time(text: object) -> float | None:
    try:
        at = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp()
