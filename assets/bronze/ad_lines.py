"""Displayed ads as lines of JSON: all fields are required, and all are strings."""

from __future__ import annotations

from collections.abc import Callable

from assets.bronze.arrival_times import IMPOSSIBLE, hours_of
from blogdata.landing.json_lines import Field, Kind, reader
from blogdata.landing.lines import LineReader, Values
from quality.contracts.ads import FOUND, RECEIVED
from quality.contracts.columns import AD, AD_IDENTIFIERS

_TIME = "display_time"
_DISPLAY = tuple(
    Field(
        column.name,
        Kind.TIME if column.name == _TIME else Kind.TEXT,
        required=True,
        identifies=column.name in AD_IDENTIFIERS,
    )
    for column in AD
)
_AT = [column.name for column in AD].index(_TIME)


class AdLines(LineReader):
    contract = RECEIVED

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        fields_of, hour_of = reader(_DISPLAY), hours_of(partition)

        def read(offset: int, raw: bytes) -> Values:
            values, reasons = fields_of(offset, raw)
            time = values[_AT]
            hour = hour_of(time) if time else None
            if time and not hour:
                reasons = (*reasons, IMPOSSIBLE)
            if reasons:
                return (None, None, reasons, *_NOTHING)
            return (time, hour, reasons, *values[:_AT], *values[_AT + 1 :])

        return read


_NOTHING = (None,) * len(FOUND)
