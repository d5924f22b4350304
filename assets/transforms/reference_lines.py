"""Lines of reference tables, JSON or CSV: users, delivered in full or changed in a table, and devices.

A rejected line keeps the values that can be read: one that names its user shows that the user is still there.

Decisions: only a user's `id` is required. A change (:mod:`assets.transforms.user_changes`) must have been made on the
day it landed in. A device's `type` and `version` are required, and may be numbers in JSON, which are taken as they are
written. The header of a CSV file is a row with the reason `header`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING

from assets.transforms import user_changes
from blogdata.landing import csv_lines, json_lines
from blogdata.landing.json_lines import Field, Kind, Read, arrow_type
from blogdata.landing.landed_formats import extension
from blogdata.landing.records import Values
from blogdata.landing.times import iso_time
from blogdata.patterns.idempotency.merger import DELETED
from blogdata.patterns.ingestion.incremental_loader import UNTIMED

if TYPE_CHECKING:
    import pyarrow as pa

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


class UserLines:
    """Reads lines of users; `is_deleted` is null unless the line is a change."""

    @property
    def schema(self) -> pa.Schema:
        import pyarrow as pa

        return (
            _schema(_USER)
            .append(pa.field(user_changes.DELTA, arrow_type(Kind.TIME)))
            .append(pa.field(DELETED, pa.bool_()))
        )

    def has_state(self, file: str) -> bool:
        return _is_csv(file)

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        name = PurePath(file).name
        if not user_changes.is_of_table(name):
            fields_of = _reader(file, _USER)

            def read(offset: int, raw: bytes) -> Values:
                values, reasons = fields_of(offset, raw)
                return (*values, reasons, None, None)

            return read
        is_untimed = name.startswith(f"{user_changes.PREFIX}{UNTIMED}")
        changed_of = _reader(file, _CHANGED_USER)

        def read_change(offset: int, raw: bytes) -> Values:
            (*values, changed, is_deleted), reasons = changed_of(offset, raw)
            time = iso_time(changed) if changed and not is_untimed else None
            if time is None or time.date().isoformat() != partition:
                reason, time = "impossible_time" if changed else "missing_field", None
                reasons = (*reasons, f"{reason}:{user_changes.DELTA}")
            return (*values, reasons, time, bool(is_deleted))

        return read_change


class DeviceLines:
    """Reads lines of devices."""

    @property
    def schema(self) -> pa.Schema:
        return _schema(_DEVICE)

    def has_state(self, file: str) -> bool:
        return _is_csv(file)

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        fields_of = _reader(file, _DEVICE)

        def read(offset: int, raw: bytes) -> Values:
            values, reasons = fields_of(offset, raw)
            return (*values, reasons)

        return read


def _schema(fields: tuple[Field, ...]) -> pa.Schema:
    import pyarrow as pa

    types = {field.name: arrow_type(field.kind) for field in fields}
    return pa.schema({**types, "reasons": pa.list_(pa.string())})


def _is_csv(file: str) -> bool:
    return extension(file) == "csv"


def _reader(file: str, fields: tuple[Field, ...]) -> Callable[[int, bytes], Read]:
    if _is_csv(file):
        return csv_lines.reader(fields)
    read = json_lines.reader(fields)
    return lambda offset, raw: read(raw)
