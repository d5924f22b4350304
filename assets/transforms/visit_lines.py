"""Visit events as lines of JSON: what a line must have, and the columns that it becomes.

Lines of a table of visits (:mod:`assets.transforms.legacy_visits`) have two fields more: a row that is marked as
deleted is removed by the filter `deleted`, and one whose time of ingestion is missing or still to come is rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING

from assets.transforms import legacy_visits, link_campaigns
from assets.transforms.arrival_times import IMPOSSIBLE, hours_of
from blogdata.landing.json_lines import Field, Kind, arrow_type, reader
from blogdata.landing.records import Values
from blogdata.patterns.ingestion.incremental_loader import UNTIMED

if TYPE_CHECKING:
    import pyarrow as pa

JSON = "json"
"""The format of these lines."""
TECHNICAL = ("browser", "browser_version", "network_type", "device_type", "device_version")
_VISIT = (
    Field("visit_id", required=True, identifies=True),
    Field("event_time", Kind.TIME, required=True),
    Field("user_id", required=True, identifies=True),
    Field("page", required=True),
    Field("keep_private", Kind.FLAG),
    Field("context.referral"),
    Field("context.ad_id"),
    Field("context.user.ip"),
    Field("context.user.login"),
    Field("context.user.connected_since", Kind.TIME),
    *(Field(f"context.technical.{name}") for name in TECHNICAL),
)
_LEGACY_VISIT = (*_VISIT, Field(legacy_visits.DELTA), Field("is_deleted", Kind.FLAG))
FIELDS = (
    "visit_id",
    "event_time",
    "event_hour",
    "user_id",
    "keep_private",
    "page",
    "utm",
    "referral",
    "ad_id",
    "ip",
    "login",
    "connected_since",
    *TECHNICAL,
)
COLUMNS = (*FIELDS, "format", "filtered_by", "reasons")


class VisitLines:
    """Reads lines of visit events into :data:`COLUMNS`."""

    def __init__(self, *, older: bool = False) -> None:
        """Read lines that an earlier release found usable (`older`): an optional field of another type is null."""
        self._older = older

    @property
    def schema(self) -> pa.Schema:
        import pyarrow as pa

        kinds = {field.name: field.kind for field in _VISIT}
        types = {name: arrow_type(kinds.get(name, Kind.TEXT)) for name in COLUMNS}
        return pa.schema({**types, "reasons": pa.list_(pa.string())})

    def has_state(self, file: str) -> bool:
        return False

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        name = PurePath(file).name
        is_of_table, is_untimed = legacy_visits.is_of_table(name), name.startswith(f"{legacy_visits.PREFIX}{UNTIMED}")
        of_visit = len(_VISIT)
        fields_of, hour_of = reader(_LEGACY_VISIT if is_of_table else _VISIT), hours_of(partition)

        def read(offset: int, raw: bytes) -> Values:
            values, reasons = fields_of(raw)
            visit_id, time, user_id, page, keep_private = values[:5]
            hour = hour_of(time) if time else None
            if time and not hour:
                reasons = (*reasons, IMPOSSIBLE)
            filtered_by = None
            if is_of_table:
                ingested, is_deleted = values[of_visit:]
                filtered_by = legacy_visits.DELETED if is_deleted else None
                if is_untimed:
                    reason = "missing_field" if ingested is None else "impossible_time"
                    reasons = (*reasons, f"{reason}:{legacy_visits.DELTA}")
            if self._older and not is_untimed and hour and visit_id and user_id and page is not None:
                reasons = ()
            if reasons:
                return (*_NOTHING, JSON, None, reasons)
            if filtered_by:
                # What tells which event it deletes.
                return (visit_id, time, hour, None, None, page, *_NOTHING[6:], JSON, filtered_by, reasons)
            private = True if keep_private is None else keep_private
            utm = link_campaigns.campaign_of_page(page)
            return (visit_id, time, hour, user_id, private, page, utm, *values[5:of_visit], JSON, filtered_by, reasons)

        return read


_NOTHING = (None,) * len(FIELDS)
