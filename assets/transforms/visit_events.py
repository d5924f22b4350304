"""Visit events: judging every landed line, and reading the typed columns of those that are events.

`judge` adds the verdict to each line (all reasons, first filter, event time) and keeps its bytes; `parse` reads the
typed columns from the bytes of the rows that passed. Both are pure Columns, with one exception: for access logs the
distinct user agents are collected to the client once (see :mod:`assets.transforms.access_logs`).
"""

from __future__ import annotations

from collections.abc import Callable, Set

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.transforms import access_logs, json_lines, link_campaigns
from assets.transforms.visit_times import hour_of, impossible, iso_time
from blogdata.patterns.data_value import wrapper
from blogdata.patterns.error_management import dead_letter
from blogdata.patterns.error_management.dead_letter import RejectRule
from blogdata.patterns.ingestion import log_formats
from blogdata.services.config import LogSettings
from quality.contracts import landed
from quality.contracts.columns import IDENTIFIERS, VISIT

WITH_DEFAULT = ("keep_private",)
"""Non-null columns whose field may be null or absent."""
REQUIRED = tuple(column.name for column in VISIT if not column.nullable and column.name not in WITH_DEFAULT)

_TIME = "event_time"
_TEXTS = tuple(name for name in REQUIRED if name != _TIME)
_FIRST_LOOK = (
    "visit_id: variant, user_id: variant, page: variant, event_time: string, keep_private: boolean,"
    " context: struct<user: struct<connected_since: string>, technical: struct<__none: string>>"
)
_SECOND_LOOK = (
    "visit_id: string, user_id: string, page: string, event_time: variant, keep_private: string, context: string"
)
_THIRD_LOOK = "array<struct<context: struct<user: string, technical: string>>>"


def judged(lines: DataFrame) -> DataFrame:
    """Add to lines of JSON event_time TIMESTAMP, of rejected rows where it can be read, and reasons ARRAY<STRING>.

    A null `raw` is an empty line.
    """
    text = json_lines.text_of()
    read = json_lines.look(lines, _FIRST_LOOK).withColumn(_TIME, iso_time(json_lines.first()[_TIME]))
    read = json_lines.judged(read, _plainly_good(text), _looks(text), _field_rules())
    return read.select(*(name for name in lines.columns if name != _TIME), _TIME, "reasons")


def _plainly_good(text: Column) -> Column:
    event, time = json_lines.first(), F.col(_TIME)
    since = event["context"]["user"]["connected_since"]
    may_name_since = text.contains("connected_since") | text.contains("\\u")
    return (
        F.col("_object")
        & json_lines.are_texts(_TEXTS, IDENTIFIERS)
        & event["keep_private"].isNotNull()
        & event["context"]["user"].isNotNull()
        & event["context"]["technical"].isNotNull()
        & F.when(since.isNull(), ~may_name_since).otherwise(iso_time(since).isNotNull())
        & ~impossible(time, F.col("arrival_hour"))
    )


def _looks(text: Column) -> Column:
    nested = F.when(F.col("_object") & json_lines.first()["context"].isNotNull(), json_lines.sealed(text))
    context = F.get(json_lines.parsed(nested, _THIRD_LOOK), F.lit(0))["context"]
    return json_lines.again(text, _SECOND_LOOK, context=context)


def _field_rules() -> list[RejectRule]:
    event, time = json_lines.first(), F.col(_TIME)
    second, third = F.col("_again")["plain"], F.col("_again")["context"]
    since = event["context"]["user"]["connected_since"]
    return [
        *json_lines.field_rules(REQUIRED, IDENTIFIERS, _TIME),
        _present("keep_private", read=event["keep_private"], plain=second["keep_private"]),
        _present("context", read=event["context"], plain=second["context"]),
        _present("context.user", read=event["context"]["user"], plain=third["user"]),
        _present("context.technical", read=event["context"]["technical"], plain=third["technical"]),
        RejectRule(name="invalid_time:event_time", condition=json_lines.is_text(second[_TIME]) & time.isNull()),
        dead_letter.unreadable("invalid_time:context.user.connected_since", source=since, result=iso_time(since)),
        RejectRule(name="impossible_time", condition=impossible(time, F.col("arrival_hour"))),
    ]


def _present(field: str, *, read: Column, plain: Column) -> RejectRule:
    """Build the rule that a field has a value, but not of the expected type."""
    return dead_letter.unreadable(f"wrong_type:{field}", source=plain, result=read)


JSON = "json"
LOG = log_formats.UNKNOWN
"""The format of lines of access logs until they are judged, and of those that fit no format."""
LOGS: frozenset[str] = frozenset({LOG, log_formats.OWN, log_formats.COMMENT, *log_formats.NAMES})
"""The formats of lines of access logs. Before a line had the name of its own, that of all was `combined`."""
FORMATS: frozenset[str] = LOGS | {JSON}
POSITION = ("source_file", "source_offset", "arrival_hour")
_RECEIVED = ("raw", *POSITION, "format", "event_time", "event_hour")
JUDGED = (*_RECEIVED, "reasons", "crawler", "filtered_by")
_TECHNICAL = ("browser", "browser_version", "network_type", "device_type", "device_version")
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
    *_TECHNICAL,
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

    Pass only `json` as formats if that is known: logs need an extra pass for their distinct agents. A row in a format
    that is not listed is rejected. Returns the columns of :data:`JUDGED`, one row per input row.
    """
    return _by_format(lines, formats, _judged_json, lambda of_logs: _verdicts(access_logs.judged(of_logs, logs)))


def parse(
    rows: DataFrame,
    formats: Set[str] = FORMATS,
    key: str | None = None,
    logs: LogSettings = LogSettings(),
) -> DataFrame:
    """Read the columns of :data:`PARSED` of the judged rows that are visit events; all other rows are dropped.

    Access logs need a key, to derive `user_id` from client and agent. Their `visit_id` is null until
    :func:`assets.transforms.visits_by_inactivity.with_visit_ids` fills it from the rows around them.
    """
    assert key or not formats & LOGS, "access logs need a key to derive user and visit ids from"
    events = rows.filter((F.size("reasons") == 0) & F.col("filtered_by").isNull())
    return _by_format(
        events, formats, _parsed_json, lambda of_logs: access_logs.parsed(of_logs, key or "", logs).select(*PARSED)
    )


def _by_format(
    rows: DataFrame,
    formats: Set[str],
    of_json: Callable[[DataFrame], DataFrame],
    of_logs: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    assert set() < formats <= FORMATS, f"{sorted(formats)} are not formats of visits"
    if formats == {JSON}:
        return of_json(rows)
    if JSON not in formats:
        return of_logs(rows)
    # A row with an unknown format is judged as JSON: it is rejected there, not lost between the two.
    is_log = F.coalesce(F.col("format").isin(*sorted(LOGS)), F.lit(False))
    return of_json(rows.filter(~is_log)).unionByName(of_logs(rows.filter(is_log)))


def _judged_json(lines: DataFrame) -> DataFrame:
    nothing = F.lit(None).cast("string")
    return _verdicts(judged(lines).withColumns(dict.fromkeys(("crawler", "filtered_by"), nothing)))


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
