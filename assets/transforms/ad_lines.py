"""Displayed ads as lines of JSON: all fields are required, and all are strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from assets.transforms.arrival_times import IMPOSSIBLE, hours_of
from blogdata.landing.json_lines import Field, Kind, arrow_type, reader
from blogdata.landing.records import Values
from quality.contracts.columns import AD, AD_IDENTIFIERS

if TYPE_CHECKING:
    import pyarrow as pa

TIME = "display_time"
_DISPLAY = tuple(
    Field(
        column.name,
        Kind.TIME if column.name == TIME else Kind.TEXT,
        required=True,
        identifies=column.name in AD_IDENTIFIERS,
    )
    for column in AD
)
COLUMNS = (*(field.name for field in _DISPLAY), "display_hour", "reasons")
_AT = COLUMNS.index(TIME)


class AdLines:
    """Reads lines of displayed ads into :data:`COLUMNS`."""

    @property
    def schema(self) -> pa.Schema:
        import pyarrow as pa

        types = {field.name: arrow_type(field.kind) for field in _DISPLAY}
        return pa.schema({**types, "display_hour": pa.string(), "reasons": pa.list_(pa.string())})

    def has_state(self, file: str) -> bool:
        return False

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        fields_of, hour_of = reader(_DISPLAY), hours_of(partition)

        def read(offset: int, raw: bytes) -> Values:
            values, reasons = fields_of(raw)
            time = values[_AT]
            hour = hour_of(time) if time else None
            if time and not hour:
                reasons = (*reasons, IMPOSSIBLE)
            return (*_NOTHING, reasons) if reasons else (*values, hour, reasons)

        return read


_NOTHING = (None,) * (len(COLUMNS) - 1)
