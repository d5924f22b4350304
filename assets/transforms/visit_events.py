"""Visit events: judging every landed line, and reading the typed columns of those that are events.

`judge` adds the verdict to each line (all reasons, first filter, event time) and keeps its bytes; `parse` reads the
typed columns from the bytes of the rows that passed. Both are pure Columns, with one exception: for access logs the
distinct user agents are collected to the client once (see :mod:`assets.transforms.access_logs`).
"""

from __future__ import annotations

from collections.abc import Callable, Set

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.transforms import access_logs, json_lines, link_campaigns, visit_judging
from assets.transforms.visit_times import hour_of, iso_time
from blogdata.errors import ConfigurationError
from blogdata.patterns.data_value import wrapper
from blogdata.patterns.ingestion import log_formats
from blogdata.services.config import LogSettings
from quality.contracts import landed

JSON = "json"
LOG = log_formats.UNKNOWN
"""The format of lines of access logs until they are judged, and of those that fit no format."""
LOGS: frozenset[str] = frozenset({LOG, log_formats.OWN, log_formats.COMMENT, *log_formats.NAMES})
"""The formats of lines of access logs. Before a line had the name of its own, that of all was `combined`."""
FORMATS: frozenset[str] = LOGS | {JSON}
POSITION = ("source_file", "source_offset", "arrival_hour")
JUDGED = ("raw", *POSITION, "format", "event_time", "event_hour", "reasons", "crawler", "filtered_by")
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
    "browser",
    "browser_version",
    "network_type",
    "device_type",
    "device_version",
)
PARSED = (*FIELDS, "raw", *POSITION, "format")

# Judging has read the time already.
_EVENT = ", ".join(f"{field.name} {field.type}" for field in landed.VISIT if field.name != "event_time")


def judge(
    lines: DataFrame,
    formats: Set[str] = FORMATS,
    logs: LogSettings = LogSettings(),
) -> DataFrame:
    """Add to every landed line all reasons to reject it, its event time, and the filter that removes it.

    Args:
        lines: raw BINARY, source_file, source_offset, arrival_hour (`2026-01-31T05`), format; other columns are
            dropped.
        formats: The formats that may occur. Pass only `json` if that is known: logs need an extra pass for their
            distinct agents. Every row is judged; a row in a format that is not listed is rejected.

    Returns:
        The columns of :data:`JUDGED`, one row per input row.

    Raises:
        ConfigurationError: A format is unknown, or none is given.
    """
    return _by_format(lines, formats, _judged_json, lambda of_logs: _verdicts(access_logs.judged(of_logs, logs)))


def parse(
    rows: DataFrame,
    formats: Set[str] = FORMATS,
    key: str | None = None,
    logs: LogSettings = LogSettings(),
) -> DataFrame:
    """Read the typed columns of the rows that are visit events; all other rows are dropped.

    Args:
        rows: Rows of :func:`judge` (or of a table of them).
        key: Secret to derive `user_id` from client and agent; required for access logs.

    Returns:
        The columns of :data:`PARSED`. `visit_id` of log rows is null until
        :func:`assets.transforms.visits_by_inactivity.with_visit_ids` fills it from the rows around them.

    Raises:
        ConfigurationError: A format is unknown, none is given, or logs come without a key.
    """
    events = rows.filter((F.size("reasons") == 0) & F.col("filtered_by").isNull())
    if formats & LOGS and not key:
        raise ConfigurationError(
            what="access logs need a secret key to derive user and visit ids from",
            where="parse(key=...)",
            next_step="pass the key of the deployment; the same key gives the same ids",
        )
    return _by_format(
        events, formats, _parsed_json, lambda of_logs: access_logs.parsed(of_logs, key or "", logs).select(*PARSED)
    )


def _by_format(
    rows: DataFrame,
    formats: Set[str],
    of_json: Callable[[DataFrame], DataFrame],
    of_logs: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    if not formats or formats - FORMATS:
        raise ConfigurationError(
            what=f"{sorted(formats)} are not formats of visits",
            where="formats",
            next_step=f"choose among '{JSON}' and '{LOG}'",
        )
    if formats == {JSON}:
        return of_json(rows)
    if JSON not in formats:
        return of_logs(rows)
    # A row with an unknown format is judged as JSON: it is rejected there, not lost between the two.
    is_log = F.coalesce(F.col("format").isin(*sorted(LOGS)), F.lit(False))
    return of_json(rows.filter(~is_log)).unionByName(of_logs(rows.filter(is_log)))


def _judged_json(lines: DataFrame) -> DataFrame:
    nothing = F.lit(None).cast("string")
    return _verdicts(visit_judging.judged(lines).withColumns(dict.fromkeys(("crawler", "filtered_by"), nothing)))


def _verdicts(judged: DataFrame) -> DataFrame:
    """Keep the event time of valid rows only: that of a rejected row cannot be trusted."""
    time = F.when(F.size("reasons") == 0, F.col("event_time"))
    return judged.withColumns({"event_time": time, "event_hour": hour_of(time)}).select(*JUDGED)


def _parsed_json(events: DataFrame) -> DataFrame:
    text = F.col("raw").cast("string")
    read = events.select(*_RECEIVED, F.from_json(text, _EVENT, json_lines.JSON_OPTIONS).alias("_event"))
    event = F.col("_event")
    context = event["context"]
    user, technical = context["user"], context["technical"]
    computed = {
        **{name: event[name] for name in ("visit_id", "user_id", "page")},
        "utm": link_campaigns.of_page(event["page"]),
        "keep_private": F.coalesce(event["keep_private"], F.lit(True)),
        **{name: context[name] for name in ("referral", "ad_id")},
        **{name: user[name] for name in ("ip", "login")},
        "connected_since": iso_time(user["connected_since"]),
        **{name: technical[name] for name in _TECHNICAL},
    }
    return wrapper.beside(read, computed).select(*PARSED)


_RECEIVED = ("raw", *POSITION, "format", "event_time", "event_hour")
_TECHNICAL = ("browser", "browser_version", "network_type", "device_type", "device_version")
