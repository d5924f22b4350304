"""Judges landed visit events: each line must be exactly one JSON object, with fields of the expected types.

How a line of JSON is read, and what counts as one object, is in :mod:`assets.transforms.json_lines`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.transforms import json_lines
from assets.transforms.visit_times import impossible, iso_time
from blogdata.patterns.error_management import dead_letter
from blogdata.patterns.error_management.dead_letter import RejectRule
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
    """Add to every line of JSON its time and all reasons to reject it.

    Args:
        lines: raw BINARY, arrival_hour STRING, and anything else. A null `raw` is an empty line.

    Returns:
        The input with event_time TIMESTAMP (also of rejected rows, where it can be read) and reasons ARRAY<STRING>.
    """
    text = json_lines.text_of()
    read = json_lines.look(lines, _FIRST_LOOK).withColumn(_TIME, iso_time(json_lines.first()[_TIME]))
    read = read.withColumn("_clean", _plainly_good(text))
    read = read.withColumn("_look", F.when(~F.col("_clean"), F.col("_look")))
    # Only rows that are not plainly good pay for further looks.
    read = read.withColumn("_again", F.when(~F.col("_clean"), _looks(text)))
    verdict = F.when(F.col("_again")["object"], dead_letter.reasons(_field_rules())).otherwise(
        F.array(json_lines.line_reason(text))
    )
    read = read.withColumn("reasons", F.when(F.col("_clean"), F.array().cast("array<string>")).otherwise(verdict))
    return read.select(*(name for name in lines.columns if name != _TIME), _TIME, "reasons")


def _plainly_good(text: Column) -> Column:
    event, time = json_lines.first(), F.col(_TIME)
    since = event["context"]["user"]["connected_since"]
    good = (
        F.col("_object")
        & json_lines.are_texts(_TEXTS, IDENTIFIERS)
        & event["keep_private"].isNotNull()
        & event["context"]["user"].isNotNull()
        & event["context"]["technical"].isNotNull()
        & F.when(since.isNull(), ~_may_name("connected_since", text)).otherwise(iso_time(since).isNotNull())
        & ~impossible(time, F.col("arrival_hour"))
    )
    return F.coalesce(good, F.lit(False))


def _may_name(field: str, text: Column) -> Column:
    return text.contains(field) | text.contains("\\u")


def _looks(text: Column) -> Column:
    nested = F.when(F.col("_object") & json_lines.first()["context"].isNotNull(), json_lines.sealed(text))
    context = F.get(json_lines.parsed(nested, _THIRD_LOOK), F.lit(0))["context"]
    return json_lines.again(text, _SECOND_LOOK, context=context)


def _field_rules() -> list[RejectRule]:
    event, second, third, time = (
        json_lines.first(),
        F.col("_again")["plain"],
        F.col("_again")["context"],
        F.col(_TIME),
    )
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
