"""Judges landed lines of JSON: each must be exactly one object, with fields of the expected types.

One parse decides nearly every row. The line is wrapped as ``[line,{"__end":seal}]`` and read as an array of structs:
only a line that is exactly one JSON object yields two elements, the second with the seal. Spark's parser ignores text
after the first value; here such text breaks the array or hides the seal. Required fields are read as VARIANT, which
distinguishes ``12`` from ``"12"``; a STRING would not. Only rows that are not plainly good are parsed again, with other
types.

Decisions: if a key occurs twice, the last value is used, here and when the columns are read; single quotes, NaN,
comments and trailing commas are not JSON, nor is nesting beyond the parser's 1,000 levels; a string with half a
surrogate pair has no UTF-8 form and has the wrong type; a JSON array is `not_json` even if it holds objects; a blank
identifier counts as missing, as in users and devices, since no downstream table accepts it.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.transforms.visit_times import impossible, iso_time
from patterns.error_management import dead_letter
from patterns.error_management.dead_letter import RejectRule
from quality.contracts.columns import IDENTIFIERS, VISIT, filled

MAX_BYTES = 1_048_576
WITH_DEFAULT = ("keep_private",)
"""Non-null columns whose field may be null or absent."""
REQUIRED = tuple(column.name for column in VISIT if not column.nullable and column.name not in WITH_DEFAULT)
JSON_OPTIONS = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false", "mode": "PERMISSIVE"}

_END = "__end"
_FIRST_LOOK = (
    "array<struct<visit_id: variant, user_id: variant, page: variant, event_time: string, keep_private: boolean,"
    " context: struct<user: struct<connected_since: string>, technical: struct<__none: string>>, __end: string>>"
)
_SECOND_LOOK = (
    "array<struct<visit_id: string, user_id: string, page: string, event_time: variant, keep_private: string,"
    " context: string>>"
)
_THIRD_LOOK = "array<struct<context: struct<user: string, technical: string>>>"
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_GAP = r"\}\s*+\{"
_ENDS = "array<struct<__end: string>>"


def judged(lines: DataFrame) -> DataFrame:
    """Add to every line of JSON its time and all reasons to reject it.

    Args:
        lines: raw BINARY, arrival_hour STRING, and anything else. A null `raw` is an empty line.

    Returns:
        The input with event_time TIMESTAMP (also of rejected rows, where it can be read) and reasons ARRAY<STRING>.
    """
    text = F.col("raw").cast("string")
    small = F.coalesce(F.octet_length("raw"), F.lit(0)) <= MAX_BYTES
    readable = small & F.coalesce(F.is_valid_utf8(text), F.lit(False))
    read = lines.withColumns({"_readable": readable, "_small": small})
    read = read.withColumn("_seal", F.when(F.col("_readable"), _seal(text)))
    read = read.withColumn("_look", _parsed(_sealed(text, F.col("_seal")), _FIRST_LOOK))
    read = read.withColumns(
        {
            "_object": _is_one_object(F.col("_look"), F.col("_seal")),
            "event_time": iso_time(_event()["event_time"]),
        }
    )
    read = read.withColumn("_clean", _plainly_good(text))
    read = read.withColumn("_look", F.when(~F.col("_clean"), F.col("_look")))
    read = read.withColumn("_again", _second_looks(text))
    verdict = F.when(F.col("_again")["object"], dead_letter.reasons(_field_rules(text))).otherwise(
        F.array(_shape(text))
    )
    read = read.withColumn("reasons", F.when(F.col("_clean"), F.array().cast("array<string>")).otherwise(verdict))
    return read.select(*(name for name in lines.columns if name != "event_time"), "event_time", "reasons")


def _seal(text: Column) -> Column:
    """Build a seal that cannot occur in the line it closes."""
    return F.when(text.contains(_END), F.sha2(text, 256)).otherwise(F.lit("."))


def _sealed(text: Column, seal: Column) -> Column:
    return F.concat(F.lit("["), text, F.lit(f',{{"{_END}":"'), seal, F.lit('"}]'))


def _parsed(text: Column, schema: str) -> Column:
    return F.from_json(text, schema, JSON_OPTIONS)


def _is_one_object(look: Column, seal: Column) -> Column:
    ends = F.get(look, F.lit(1))[_END] == seal
    return F.coalesce((F.size(look) == 2) & F.get(look, F.lit(0)).isNotNull() & ends, F.lit(False))


def _event() -> Column:
    return F.get("_look", F.lit(0))


def _is_text(value: Column) -> Column:
    return F.coalesce(F.schema_of_variant(value) == "STRING", F.lit(False))


def _plainly_good(text: Column) -> Column:
    event, time = _event(), F.col("event_time")
    since = event["context"]["user"]["connected_since"]
    identified = [F.expr(filled(f"try_variant_get(get(_look, 0).{name}, '$', 'string')")) for name in IDENTIFIERS]
    good = (
        F.col("_object")
        & _is_text(event["visit_id"])
        & _is_text(event["user_id"])
        & _is_text(event["page"])
        & reduce(Column.__and__, identified)
        & event["keep_private"].isNotNull()
        & event["context"]["user"].isNotNull()
        & event["context"]["technical"].isNotNull()
        & F.when(since.isNull(), ~_may_name("connected_since", text)).otherwise(iso_time(since).isNotNull())
        & ~impossible(time, F.col("arrival_hour"))
    )
    return F.coalesce(good, F.lit(False))


def _may_name(field: str, text: Column) -> Column:
    return text.contains(field) | text.contains("\\u")


def _second_looks(text: Column) -> Column:
    """Parse the rows that are not plainly good again; only they pay for it."""
    sealed = F.when(F.col("_object"), _sealed(text, F.col("_seal")))
    nested = F.when(_event()["context"].isNotNull(), sealed)
    # A field that is read may hide a syntax error in its own string; a skipped field is checked to its end.
    strictly = _is_one_object(_parsed(sealed, _ENDS), F.col("_seal"))
    looks = F.struct(
        strictly.alias("object"),
        F.get(_parsed(sealed, _SECOND_LOOK), F.lit(0)).alias("plain"),
        F.get(_parsed(nested, _THIRD_LOOK), F.lit(0))["context"].alias("context"),
        _are_several(F.when(F.col("_readable") & ~strictly, text), F.col("_seal")).alias("several"),
    )
    return F.when(~F.col("_clean"), looks)


def _are_several(text: Column, seal: Column) -> Column:
    """Build the condition that a line is several objects, with a comma or nothing between them.

    Commas are put between the objects, and the line is parsed twice: with its strings, to validate their contents; and
    with empty strings and a sealed object in every gap, all of which must be found at the top level.
    """
    whole = _parsed(_sealed(F.regexp_replace(text, _GAP, "},{"), seal), _ENDS)
    bare = F.regexp_replace(text, _STRING, '""')
    dot = F.lit(".")
    parted = F.regexp_replace(bare, _GAP, f'}},{{"{_END}":"."}},{{')
    pieces = _parsed(_sealed(parted, dot), _ENDS)
    ends = F.size(F.filter(pieces, lambda one: F.coalesce(one[_END] == dot, F.lit(False))))
    several = (
        (F.element_at(F.when(F.size(whole) > 2, whole), F.lit(-1))[_END] == seal)
        & (F.element_at(F.when(F.size(pieces) > 2, pieces), F.lit(-1))[_END] == dot)
        & (ends == F.regexp_count(bare, F.lit(_GAP)) + 1)
        & F.forall(pieces, lambda one: one.isNotNull())
    )
    return F.coalesce(several, F.lit(False))


def _shape(text: Column) -> Column:
    """Build the reason why a line is not exactly one JSON object."""
    cut = text.rlike(r'^\s*+\{"') & ~text.rlike(r"\}\s*+\z")
    return (
        F.when(~F.col("_small"), F.lit("too_large"))
        .when(F.col("raw").isNull() | text.rlike(r"^\s*+\z"), F.lit("empty_line"))
        .when(~F.col("_readable"), F.lit("not_utf8"))
        .when(cut, F.lit("truncated"))
        .when(F.col("_again")["several"], F.lit("several_objects"))
        .otherwise(F.lit("not_json"))
    )


def _field_rules(text: Column) -> list[RejectRule]:
    event, second, third, time = (
        _event(),
        F.col("_again")["plain"],
        F.col("_again")["context"],
        F.col("event_time"),
    )
    rules = []
    for name in REQUIRED:
        typed = second[name] if name == "event_time" else event[name]
        plain = event[name] if name == "event_time" else second[name]
        nothing = F.is_variant_null(typed) | (typed.isNull() & plain.isNull())
        blank = ~F.expr(filled(f"_again.plain.{name}")) if name in IDENTIFIERS else F.lit(False)
        rules.append(RejectRule(name=f"missing_field:{name}", condition=nothing | blank))
        rules.append(RejectRule(name=f"wrong_type:{name}", condition=~nothing & ~_is_text(typed)))
    since = event["context"]["user"]["connected_since"]
    return [
        *rules,
        _present("keep_private", read=event["keep_private"], plain=second["keep_private"]),
        _present("context", read=event["context"], plain=second["context"]),
        _present("context.user", read=event["context"]["user"], plain=third["user"]),
        _present("context.technical", read=event["context"]["technical"], plain=third["technical"]),
        RejectRule(name="invalid_time:event_time", condition=_is_text(second["event_time"]) & time.isNull()),
        dead_letter.unreadable("invalid_time:context.user.connected_since", source=since, result=iso_time(since)),
        RejectRule(name="impossible_time", condition=impossible(time, F.col("arrival_hour"))),
    ]


def _present(field: str, *, read: Column, plain: Column) -> RejectRule:
    """Build the rule that a field has a value, but not of the expected type."""
    return dead_letter.unreadable(f"wrong_type:{field}", source=plain, result=read)
