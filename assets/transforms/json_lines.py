"""Reads landed lines of JSON, each of which must be exactly one object; the caller names the fields and judges them.

One parse decides nearly every row. The line is wrapped as ``[line,{"__end":seal}]`` and read as an array of structs:
only a line that is exactly one JSON object yields two elements, the second with the seal. Spark's parser ignores text
after the first value; here such text breaks the array or hides the seal. Required fields are read as VARIANT, which
distinguishes ``12`` from ``"12"``; a STRING would not. Only rows that are not plainly good are parsed again, with other
types. The intermediate results are columns whose names begin with `_`.

Decisions: if a key occurs twice, the last value is used, here and when the columns are read; single quotes, NaN,
comments and trailing commas are not JSON, nor is nesting beyond the parser's 1,000 levels; a string with half a
surrogate pair has no UTF-8 form and has the wrong type; a JSON array is `not_json` even if it holds objects; a blank
identifier counts as missing, as in users and devices, since no downstream table accepts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from blogdata.patterns.error_management import dead_letter
from blogdata.patterns.error_management.dead_letter import RejectRule
from quality.contracts.columns import filled

MAX_BYTES = 1_048_576
JSON_OPTIONS = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false", "mode": "PERMISSIVE"}

_END = "__end"
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_GAP = r"\}\s*+\{"
_ENDS = "array<struct<__end: string>>"


def text_of() -> Column:
    """Return the line as STRING; valid UTF-8 only where `_readable` is true."""
    return F.col("raw").cast("string")


def look(lines: DataFrame, fields: str) -> DataFrame:
    """Read the fields (Spark SQL struct fields) of lines for the first time; a null `raw` is an empty line.

    Adds _small and _readable BOOLEAN (not too large; valid UTF-8 as well), _seal STRING, _look (the parsed line), and
    _object BOOLEAN: it is one JSON object, as far as the fields show.
    """
    text = text_of()
    small = F.coalesce(F.octet_length("raw"), F.lit(0)) <= MAX_BYTES
    readable = small & F.coalesce(F.is_valid_utf8(text), F.lit(False))
    read = lines.withColumns({"_readable": readable, "_small": small})
    read = read.withColumn("_seal", F.when(F.col("_readable"), _seal(text)))
    read = read.withColumn("_look", parsed(sealed(text), f"array<struct<{fields}, {_END}: string>>"))
    return read.withColumn("_object", _is_one_object(F.col("_look"), F.col("_seal")))


def first() -> Column:
    """Return the object that the first look found."""
    return F.get("_look", F.lit(0))


def sealed(text: Column) -> Column:
    """Wrap a line so that a parse shows where it ends."""
    return _sealed(text, F.col("_seal"))


def parsed(text: Column, schema: str) -> Column:
    """Parse a wrapped line."""
    return F.from_json(text, schema, JSON_OPTIONS)


def is_text(value: Column) -> Column:
    """Build the condition that a VARIANT is a string."""
    return F.coalesce(F.schema_of_variant(value) == "STRING", F.lit(False))


def are_texts(fields: Sequence[str], identifiers: Sequence[str]) -> Column:
    """Build the condition that fields of the first look are strings, and those that identify something not blank."""
    texts = [is_text(first()[name]) for name in fields]
    named = [F.expr(filled(f"try_variant_get(get(_look, 0).{name}, '$', 'string')")) for name in identifiers]
    return reduce(Column.__and__, [*texts, *named])


def again(text: Column, fields: str, **more: Column) -> Column:
    """Parse a line for the second time, with other types of its fields (Spark SQL struct fields).

    Returns a STRUCT of object (it is one JSON object, as the parse to its end shows), plain (the fields), the further
    looks, and several (the line is several objects).
    """
    whole = F.when(F.col("_object"), sealed(text))
    # A field that is read may hide a syntax error in its own string; a skipped field is checked to its end.
    strictly = _is_one_object(parsed(whole, _ENDS), F.col("_seal"))
    return F.struct(
        strictly.alias("object"),
        F.get(parsed(whole, f"array<struct<{fields}>>"), F.lit(0)).alias("plain"),
        *(column.alias(name) for name, column in more.items()),
        _are_several(F.when(F.col("_readable") & ~strictly, text), F.col("_seal")).alias("several"),
    )


def field_rules(required: Sequence[str], identifiers: Sequence[str], time: str) -> list[RejectRule]:
    """Build the rules that required fields are there, and are strings, and that identifiers are not blank.

    The columns `_look` and `_again` must hold the first look, with `time` as STRING and the others as VARIANT, and the
    second one, with the types the other way round.
    """
    rules, second = [], F.col("_again")["plain"]
    for name in required:
        typed, plain = (second[name], first()[name]) if name == time else (first()[name], second[name])
        nothing = F.is_variant_null(typed) | (typed.isNull() & plain.isNull())
        blank = ~F.expr(filled(f"_again.plain.{name}")) if name in identifiers else F.lit(False)
        rules.append(RejectRule(name=f"missing_field:{name}", condition=nothing | blank))
        rules.append(RejectRule(name=f"wrong_type:{name}", condition=~nothing & ~is_text(typed)))
    return rules


def judged(read: DataFrame, clean: Column, again_: Column, rules: Sequence[RejectRule]) -> DataFrame:
    """Add `reasons` to lines after the first look; only rows that are not plainly good (`clean`) pay for another one.

    The rules see the further look as `_again`.
    """
    read = read.withColumn("_clean", F.coalesce(clean, F.lit(False)))
    read = read.withColumn("_look", F.when(~F.col("_clean"), F.col("_look")))
    read = read.withColumn("_again", F.when(~F.col("_clean"), again_))
    verdict = F.when(F.col("_again")["object"], dead_letter.reasons(rules)).otherwise(F.array(_line_reason(text_of())))
    return read.withColumn("reasons", F.when(F.col("_clean"), F.array().cast("array<string>")).otherwise(verdict))


def _line_reason(text: Column) -> Column:
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


def _seal(text: Column) -> Column:
    """Build a seal that cannot occur in the line it closes."""
    return F.when(text.contains(_END), F.sha2(text, 256)).otherwise(F.lit("."))


def _sealed(text: Column, seal: Column) -> Column:
    return F.concat(F.lit("["), text, F.lit(f',{{"{_END}":"'), seal, F.lit('"}]'))


def _is_one_object(look: Column, seal: Column) -> Column:
    ends = F.get(look, F.lit(1))[_END] == seal
    return F.coalesce((F.size(look) == 2) & F.get(look, F.lit(0)).isNotNull() & ends, F.lit(False))


def _are_several(text: Column, seal: Column) -> Column:
    """Build the condition that a line is several objects, with a comma or nothing between them.

    Commas are put between the objects, and the line is parsed twice: with its strings, to validate their contents; and
    with empty strings and a sealed object in every gap, all of which must be found at the top level.
    """
    whole = parsed(_sealed(F.regexp_replace(text, _GAP, "},{"), seal), _ENDS)
    bare = F.regexp_replace(text, _STRING, '""')
    dot = F.lit(".")
    parted = F.regexp_replace(bare, _GAP, f'}},{{"{_END}":"."}},{{')
    pieces = parsed(_sealed(parted, dot), _ENDS)
    ends = F.size(F.filter(pieces, lambda one: F.coalesce(one[_END] == dot, F.lit(False))))
    several = (
        (F.element_at(F.when(F.size(whole) > 2, whole), F.lit(-1))[_END] == seal)
        & (F.element_at(F.when(F.size(pieces) > 2, pieces), F.lit(-1))[_END] == dot)
        & (ends == F.regexp_count(bare, F.lit(_GAP)) + 1)
        & F.forall(pieces, lambda one: one.isNotNull())
    )
    return F.coalesce(several, F.lit(False))
