"""Lines of reference tables, JSON or CSV: users, delivered in full or changed in a table, and devices.

A rejected line keeps the values that can be read: one that names its user shows that the user is still there.

Decisions: only a user's `id` is required. A change (:mod:`assets.bronze.user_changes`) must have been made on the
day it landed in. A device's `type` and `version` are required, and may be numbers in JSON, which are taken as they are
written.

A CSV file has `;` and a header, which is a row with the reason `header`. Columns are found by the header's names, never
by position. A line with an unclosed quote, with text behind a closing one, or with more or fewer values than its file's
header is `not_csv`; so is every line of a file whose header cannot be read. An empty value is a missing one. A quoted
value cannot contain a line feed.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import PurePath

from assets.bronze import user_changes
from blogdata.landing.json_lines import Field, Kind, Read, iso_time, reader, text_of, unreadable_line, values_of
from blogdata.landing.landed_formats import extension
from blogdata.landing.lines import UNTIMED, LineReader, Values
from blogdata.patterns.idempotency.merger import DELETED
from quality.contracts.devices import DEVICES_DELIVERED
from quality.contracts.users import USERS_DELIVERED

_USER = (
    Field("id", required=True, identifies=True),
    Field("login"),
    Field("email"),
    *(Field(f"{name}_datetime", Kind.TIME) for name in ("registered", "first_connection", "last_connection")),
)
_CHANGED_USER = (*_USER, Field(user_changes.DELTA), Field(DELETED, Kind.FLAG))
_DEVICE = (
    Field("type", Kind.LABEL, required=True, identifies=True),
    Field("full_name"),
    Field("version", Kind.LABEL, required=True, identifies=True),
)


class UserLines(LineReader):
    """Reads lines of users; `is_deleted` is null unless the line is a change."""

    contract = USERS_DELIVERED

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        name = PurePath(file).name
        is_change, is_untimed = user_changes.is_of_table(name), name.startswith(f"{user_changes.PREFIX}{UNTIMED}")
        fields_of = _reader(file, _CHANGED_USER if is_change else _USER)

        def read(offset: int, raw: bytes) -> Values:
            values, reasons = fields_of(offset, raw)
            if not is_change:
                return (*values, reasons, None, None)
            *values, changed, is_deleted = values
            time = iso_time(changed) if changed and not is_untimed else None
            if time is None or time.date().isoformat() != partition:
                reason, time = "impossible_time" if changed else "missing_field", None
                reasons = (*reasons, f"{reason}:{user_changes.DELTA}")
            return (*values, reasons, time, bool(is_deleted))

        return read


class DeviceLines(LineReader):
    contract = DEVICES_DELIVERED

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        fields_of = _reader(file, _DEVICE)

        def read(offset: int, raw: bytes) -> Values:
            values, reasons = fields_of(offset, raw)
            return (*values, reasons)

        return read


def _reader(file: str, fields: tuple[Field, ...]) -> Callable[[int, bytes], Read]:
    return _csv_reader(fields) if extension(file) == "csv" else reader(fields)


def _csv_reader(fields: Sequence[Field]) -> Callable[[int, bytes], Read]:
    """Return what reads the lines of one file, in their order, the header first; it has the reason `header`."""
    nothing = (None,) * len(fields)
    names: list[str] = []

    def read(offset: int, raw: bytes) -> Read:
        nonlocal names
        text = text_of(raw)
        if text is None:
            return nothing, (unreadable_line(raw),)
        row = _values(text.removesuffix("\r"))
        if offset == 0:
            names = [name.strip(" ") for name in row]
            return nothing, ("header",)
        if not row or len(row) != len(names):
            return nothing, ("not_csv",)
        # Of columns with one name the first counts.
        values = dict(zip(reversed(names), reversed(row), strict=True))
        return values_of({name: value or None for name, value in values.items()}, fields)

    return read


def _values(line: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=";", strict=True), [])
    except csv.Error:
        return []
