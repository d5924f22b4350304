"""The hand-written script's rules for lines: which are visit events or ads, and why others are rejected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from benchmarks.straight_sql import ISO, TECHNICAL, hour_of

STRICT = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
LOOK = (
    "array<struct<visit_id: variant, event_time: variant, user_id: variant, page: variant, keep_private: variant,"
    " context: variant, _end: boolean>>"
)
REQUIRED = ("visit_id", "event_time", "user_id", "page")
IDENTIFIERS = ("visit_id", "user_id")
AD_IDENTIFIERS = ("ad_id", "visit_id")
AD_FIELDS = ("ad_id", "page", "visit_id", "display_time", "campaign")
AD_LOOK = f"array<struct<{', '.join(f'{name}: variant' for name in AD_FIELDS)}, _end: boolean>>"
ARRIVAL = ("arrival_hour", "source_file", "source_offset")


def judged_visits(lines: DataFrame) -> DataFrame:
    """Judge each line: all reasons for rejection, or the columns of a visit event."""
    event, context, user, technical = F.get("look", F.lit(0)), F.col("context"), F.col("user"), F.col("technical")
    looked = with_look(lines, LOOK)
    looked = looked.withColumn("is_object", is_object("look")).withColumns(
        {
            "time": iso_time(text_of(event["event_time"])),
            "context": object_of(event["context"], ("referral", "ad_id", "user", "technical")),
        }
    )
    looked = looked.withColumns(
        {
            "user": object_of(context["user"], ("ip", "login", "connected_since")),
            "technical": object_of(context["technical"], TECHNICAL),
        }
    )
    since, time = iso_time(text_of(user["connected_since"])), F.col("time")
    not_boolean = F.schema_of_variant(event["keep_private"]) != "BOOLEAN"
    rules = [
        *field_rules(event, REQUIRED, IDENTIFIERS),
        ("wrong_type:keep_private", present(event["keep_private"]) & not_boolean),
        ("wrong_type:context", present(event["context"]) & context.isNull()),
        *text_rules(context, "context", ("referral", "ad_id")),
        ("wrong_type:context.user", present(context["user"]) & user.isNull()),
        *text_rules(user, "context.user", ("ip", "login", "connected_since")),
        ("wrong_type:context.technical", present(context["technical"]) & technical.isNull()),
        *text_rules(technical, "context.technical", TECHNICAL),
        ("invalid_time:event_time", is_text(event["event_time"]) & time.isNull()),
        ("invalid_time:context.user.connected_since", is_text(user["connected_since"]) & since.isNull()),
        ("impossible_time", impossible(time)),
    ]
    columns = {
        **texts(event, ("visit_id", "user_id", "page")),
        "keep_private": F.coalesce(F.try_variant_get(event["keep_private"], "$", "boolean"), F.lit(True)),
        **texts(context, ("referral", "ad_id")),
        **texts(technical, TECHNICAL),
        **texts(user, ("ip", "login")),
        "connected_since": since,
    }
    return kept(looked, rules, "event", columns)


def judged_ads(lines: DataFrame) -> DataFrame:
    """Judge each line: all reasons for rejection, or the columns of a display."""
    ad = F.get("look", F.lit(0))
    looked = with_look(lines, AD_LOOK).withColumns(
        {"is_object": is_object("look"), "time": iso_time(text_of(ad["display_time"]))}
    )
    rules = [
        *field_rules(ad, AD_FIELDS, AD_IDENTIFIERS),
        ("invalid_time:display_time", is_text(ad["display_time"]) & F.col("time").isNull()),
        ("impossible_time", impossible(F.col("time"))),
    ]
    return kept(looked, rules, "display", texts(ad, ("ad_id", "page", "visit_id", "campaign")))


def kept(looked: DataFrame, rules: Sequence[tuple[str, Column]], kind: str, values: Mapping[str, Column]) -> DataFrame:
    """Select what bronze keeps of each line; only a row without reasons has what was found in it."""
    columns = {f"{kind}_time": F.col("time"), f"{kind}_hour": F.expr(hour_of("time")), **values}
    kept_of = [F.when(F.size("reasons") == 0, column).alias(name) for name, column in columns.items()]
    return looked.withColumn("reasons", reasons_of(rules)).select("raw", *ARRIVAL, "reasons", *kept_of)


def with_look(lines: DataFrame, fields: str) -> DataFrame:
    """Parse each line that can be read."""
    text = F.col("raw").cast("string")
    return lines.withColumn("readable", (F.octet_length("raw") <= 1_048_576) & F.is_valid_utf8(text)).withColumn(
        "look", F.when(F.col("readable"), F.from_json(wrapped(text), fields, STRICT))
    )


def field_rules(row: Column, required: Sequence[str], identifiers: Sequence[str]) -> list[tuple[str, Column]]:
    """Return the rules that fields are there and are texts, and those that identify something not blank."""
    rules = []
    for name in required:
        blank = F.trim(text_of(row[name])) == ""
        missing = absent(row[name]) | blank if name in identifiers else absent(row[name])
        rules.append((f"missing_field:{name}", missing))
        rules.append((f"wrong_type:{name}", present(row[name]) & ~is_text(row[name])))
    return rules


def text_rules(values: Column, path: str, names: Sequence[str]) -> list[tuple[str, Column]]:
    """Return the rules that optional fields of an object are texts."""
    return [(f"wrong_type:{path}.{name}", present(values[name]) & ~is_text(values[name])) for name in names]


def object_of(value: Column, names: Sequence[str]) -> Column:
    """Read the fields of an object; null if the value is none."""
    return F.try_variant_get(value, "$", f"struct<{', '.join(f'{name}: variant' for name in names)}>")


def reasons_of(rules: Sequence[tuple[str, Column]]) -> Column:
    """List the broken rules of an object, or why a line is none."""
    fields = F.array_compact(F.array(*[F.when(broken, F.lit(name)) for name, broken in rules]))
    return F.when(F.col("is_object"), fields).otherwise(F.array(shape(F.col("raw").cast("string"))))


def impossible(time: Column) -> Column:
    """Tell whether a time is before 2000, or later than the end of the hour of arrival allows."""
    end = F.concat("arrival_hour", F.lit(":00:00Z")).cast("timestamp") + F.expr("INTERVAL 65 MINUTES")
    return (time < F.lit("2000-01-01T00:00:00Z").cast("timestamp")) | (time > end)


def shape(text: Column) -> Column:
    """Classify a line that is not a single object."""
    return (
        F.when(F.octet_length("raw") > 1_048_576, "too_large")
        .when(text.rlike(r"^\s*\z"), "empty_line")
        .when(~F.col("readable"), "not_utf8")
        .when(text.rlike(r'^\s*\{"') & ~text.rlike(r"\}\s*\z"), "truncated")
        .otherwise("not_json")
    )


def wrapped(text: Column) -> Column:
    """Wrap a line in an array with a marker: Spark ignores text after the first value, but not inside an array."""
    return F.concat(F.lit("["), text, F.lit(',{"_end":true}]'))


def is_object(look: str) -> Column:
    """Tell whether a wrapped line is one object followed by the marker."""
    single = (F.size(look) == 2) & F.get(look, F.lit(0)).isNotNull() & F.get(look, F.lit(1))["_end"]
    return F.coalesce(single, F.lit(False))


def absent(value: Column) -> Column:
    return value.isNull() | F.is_variant_null(value)


def present(value: Column) -> Column:
    return value.isNotNull() & ~F.is_variant_null(value)


def is_text(value: Column) -> Column:
    return F.schema_of_variant(value) == "STRING"


def text_of(value: Column) -> Column:
    return F.try_variant_get(value, "$", "string")


def texts(row: Column, names: Sequence[str]) -> dict[str, Column]:
    return {name: text_of(row[name]) for name in names}


def iso_time(text: Column) -> Column:
    return F.when(text.rlike(ISO), text.try_cast("timestamp"))
