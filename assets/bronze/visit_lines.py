"""Visit events as lines of JSON: what a line must have, and the columns that it becomes.

Lines of a table of visits (:mod:`assets.bronze.legacy_visits`) have two fields more: a row that is marked as
deleted is removed by the filter `deleted`, and one whose time of ingestion is missing or still to come is rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from assets.bronze import legacy_visits, link_campaigns
from assets.bronze.arrival_times import IMPOSSIBLE, hours_of
from assets.bronze.request_lines import LogLines
from blogdata.landing.json_lines import Field, Kind, reader
from blogdata.landing.landed_formats import extension
from blogdata.landing.lines import UNTIMED, LineReader, Values
from blogdata.operate.config import LogSettings
from quality.contracts.columns import CONTEXT, REQUEST
from quality.contracts.visits import FOUND, RECEIVED

JSON = "json"
"""The format of these lines."""
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
    *(Field(f"context.technical.{column.name}") for column in CONTEXT),
)
_LEGACY_VISIT = (*_VISIT, Field(legacy_visits.DELTA), Field("is_deleted", Kind.FLAG))


class VisitLines(LineReader):
    """Reads lines of visit events; the columns of requests stay null."""

    contract = RECEIVED

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        name = PurePath(file).name
        is_of_table, is_untimed = (name.startswith(f"{legacy_visits.PREFIX}{part}") for part in ("-", UNTIMED))
        of_visit = len(_VISIT)
        fields_of, hour_of = reader(_LEGACY_VISIT if is_of_table else _VISIT), hours_of(partition)

        def read(offset: int, raw: bytes) -> Values:
            values, reasons = fields_of(offset, raw)
            visit_id, time, user_id, page, keep_private, referral, ad_id, ip, login, since, *context = values[:of_visit]
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
            if reasons:
                return (JSON, None, None, reasons, None, None, *_NOTHING)
            if filtered_by:
                # What tells which event it deletes.
                return (JSON, time, hour, reasons, None, filtered_by, visit_id, None, None, page, *_NOTHING[4:])
            private = True if keep_private is None else keep_private
            utm = link_campaigns.campaign_of_page(page)
            of_page = (visit_id, user_id, private, page, referral, ad_id, utm)
            return (JSON, time, hour, reasons, None, None, *of_page, *context, ip, login, since, *_NO_REQUEST)

        return read


_NOTHING, _NO_REQUEST = (None,) * len(FOUND), (None,) * len(REQUEST)


class ReceivedLines(LineReader):
    """Reads lines of landed visits, and of access logs if it has their settings."""

    contract = RECEIVED

    def __init__(self, logs: LogSettings | None) -> None:
        self._visits, self._logs = VisitLines(), LogLines(logs) if logs is not None else None

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        reader = self._logs if extension(file) == "log" else self._visits
        assert reader is not None, f"the settings of access logs are missing, for {file}"
        return reader.of_file(file, partition)
