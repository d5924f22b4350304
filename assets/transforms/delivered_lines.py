"""Reads the lines of a delivered reference table, JSON or CSV, as text, with a reason for lines that are not rows.

A JSON line is exactly one object, checked by a seal: the line is read as `[line,{"__end":seal}]`, which
breaks when anything follows the object. A CSV line gets the seal as one more value, which detects an
unclosed quote, or more or fewer values than in its file's header. CSV columns are found by the header's
names, never by position: a producer may reorder them. A quoted value cannot contain a line feed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.transforms.json_lines import JSON_OPTIONS, MAX_BYTES
from blogdata.landing.landed_formats import has_extension
from blogdata.patterns.error_management import dead_letter
from blogdata.patterns.error_management.dead_letter import RejectRule

LINE_REASON = "line_reason"
WRONG_TYPES = "wrong_types"

_END = "__end"
_WIDEST = 64
_CSV_OPTIONS = {"sep": ";", "escape": '"', "mode": "PERMISSIVE"}
_CSV_SCHEMA = ", ".join(f"c{number} STRING" for number in range(_WIDEST + 1))


def read(lines: DataFrame, fields: Sequence[str], *, strings: Sequence[str] = ()) -> DataFrame:
    """Read the fields of every line as text.

    A file with the extension `.csv`, also before that of a compression, is CSV with `;` and a header, any other JSON.
    Each field is STRING (null when absent, null, or the line is not a row). `line_reason` is null when the line is a
    row, else `header`, `empty_line`, `not_utf8`, `too_large`, `truncated`, `not_json` or `not_csv`. `wrong_types`
    ARRAY<STRING> names the fields with an object or an array, and those of `strings` that are anything but a string in
    JSON.
    """
    names = lines.columns
    looked = _json_values(_csv_values(_with_text(lines), fields), fields, strings)
    return looked.select(
        *names,
        *(_value(field, strings).alias(field) for field in fields),
        _line_reason().alias(LINE_REASON),
        _wrong_types(fields, strings).alias(WRONG_TYPES),
    )


def reasons(rules: Sequence[RejectRule]) -> Column:
    """Build `reasons`: the one about the line, or all rules that apply."""
    line = F.col(LINE_REASON)
    return F.when(line.isNotNull(), F.array(line)).otherwise(dead_letter.reasons(rules)).alias("reasons")


def is_wrong(field: str) -> Column:
    """Build the condition that a field has a value of another type."""
    return F.array_contains(WRONG_TYPES, field)


def _with_text(lines: DataFrame) -> DataFrame:
    small = F.octet_length("raw") <= MAX_BYTES
    text = F.when(small, F.col("raw").cast("string"))
    sealed = lines.withColumns({"_text": F.when(F.is_valid_utf8(text), text), "_csv": _is_csv()})
    free = ~F.col("_text").contains(_END)
    return sealed.withColumn("_seal", F.when(free, F.lit(".")).otherwise(F.sha2(F.col("_text"), 256)))


def _is_csv() -> Column:
    return has_extension(F.col("source_file"), "csv")


def _csv_values(lines: DataFrame, fields: Sequence[str]) -> DataFrame:
    """Add the values of CSV lines, and the index of each field in them, from the header of the line's file."""
    first = lines.where(F.col("_csv") & (F.col("source_offset") == 0))
    headers = _with_tokens(first, F.col("_text")).select(
        F.col("source_file").alias("_file"),
        F.transform("_tokens", F.trim).alias("_names"),
        _csv_seal().alias("_end"),
    )
    headers = headers.select(
        "_file",
        (F.array_position("_names", F.col("_end")) - 1).alias("_width"),
        *(F.array_position("_names", field).cast("int").alias(f"_at_{field}") for field in fields),
    )
    # One row per CSV file: two files of a table may order their columns differently.
    known = lines.join(F.broadcast(headers), F.col("source_file") == F.col("_file"), "left")
    return _with_tokens(known, F.col("_text"))


def _csv_seal() -> Column:
    return F.concat(F.lit(_END), F.col("_seal"))


def _with_tokens(lines: DataFrame, text: Column) -> DataFrame:
    """Parse CSV lines into their values and the seal, except lines with more separators than any header."""
    separators = F.length(text) - F.length(F.replace(text, F.lit(";"), F.lit("")))
    sealed = F.concat(F.regexp_replace(text, r"\r$", ""), F.lit(';"'), _csv_seal(), F.lit('"'))
    row = F.from_csv(F.when(F.col("_csv") & (separators < _WIDEST), sealed), _CSV_SCHEMA, _CSV_OPTIONS)
    # A column of its own: fields taken directly from the parse would each parse the line again.
    parsed = lines.withColumn("_values", row)
    tokens = F.array(*[F.col("_values")[f"c{number}"] for number in range(_WIDEST + 1)])
    return parsed.withColumn("_tokens", tokens).drop("_values")


def _json_values(lines: DataFrame, fields: Sequence[str], strings: Sequence[str]) -> DataFrame:
    """Add the values of JSON lines; a line with a value that may be an object or an array is parsed twice."""
    sealed = F.concat(F.lit("["), F.col("_text"), F.lit(f',{{"{_END}":"'), F.col("_seal"), F.lit('"}]'))
    types = {field: "variant" if field in strings else "string" for field in fields}
    look = _parsed(F.when(~F.col("_csv"), sealed), types)
    ends = F.get("_look", F.lit(1))[_END] == F.col("_seal")
    one = (F.size("_look") == 2) & F.get("_look", F.lit(0)).isNotNull() & ends
    looked = lines.withColumn("_look", look).withColumn("_json", F.when(one, F.get("_look", F.lit(0))))
    doubtful = [F.col("_json")[field].rlike(r"^\s*[{\[]") for field in fields if field not in strings]
    again = F.when(F.coalesce(reduce(Column.__or__, doubtful), F.lit(False)), sealed) if doubtful else F.lit(None)
    second = F.get(_parsed(again.cast("string"), dict.fromkeys(fields, "variant")), F.lit(0))
    return looked.withColumn("_second", second)


def _parsed(text: Column, types: dict[str, str]) -> Column:
    columns = ", ".join(f"`{field}`: {type_}" for field, type_ in types.items())
    return F.from_json(text, f"array<struct<{columns}, {_END}: string>>", JSON_OPTIONS)


def _fits() -> Column:
    width = F.array_position("_tokens", _csv_seal()) - 1
    return F.coalesce((F.col("_width") > 0) & (width == F.col("_width")), F.lit(False))


def _value(field: str, strings: Sequence[str]) -> Column:
    value = F.col("_json")[field]
    text = F.try_variant_get(value, "$", "string") if field in strings else value
    header = F.col("source_offset") == 0
    in_csv = F.when(_fits() & ~header, F.get("_tokens", F.col(f"_at_{field}") - 1))
    return F.when(F.col("_csv"), in_csv).otherwise(text)


def _wrong_types(fields: Sequence[str], strings: Sequence[str]) -> Column:
    def has_wrong_type(field: str) -> Column:
        if field in strings:
            kind = F.schema_of_variant(F.col("_json")[field])
            return ~kind.isin("STRING", "VOID")
        return F.schema_of_variant(F.col("_second")[field]).rlike(r"^(OBJECT|ARRAY)")

    named = F.array(*[F.when(has_wrong_type(field), F.lit(field)) for field in fields])
    return F.array_compact(named)


def _line_reason() -> Column:
    text = F.col("_text")
    cut = text.rlike(r'^\s*+\{"') & ~text.rlike(r"\}\s*+\z")
    return (
        F.when(F.octet_length("raw") > MAX_BYTES, F.lit("too_large"))
        .when(text.isNull(), F.lit("not_utf8"))
        .when(text.rlike(r"^\s*+\z"), F.lit("empty_line"))
        .when(F.col("_csv") & (F.col("source_offset") == 0), F.lit("header"))
        .when(F.col("_csv"), F.when(~_fits(), F.lit("not_csv")))
        .when(F.col("_json").isNotNull(), F.lit(None))
        .when(cut, F.lit("truncated"))
        .otherwise(F.lit("not_json"))
    )
