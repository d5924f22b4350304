"""Lines of access logs to their fields, and why a line has none.

A line of text is read by the first format that fits it: one replacement splits it into its fields, by a character that
no readable line contains. The usual formats are one expression for all lines. The rare ones, and JSON objects, are
tried only for the lines that are left, inside of lambdas: so many expressions would make the code that Spark generates
for all lines too large for the JVM's compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.transforms.json_lines import MAX_BYTES
from assets.transforms.visit_times import iso_time, log_time
from blogdata.patterns.ingestion.log_declarations import CAPTURED, FIELDS, OPTIONAL, PREFIX, JsonFormat, LogFormat
from blogdata.patterns.ingestion.log_formats import COMMENT, COMMENTS, OBJECT, REQUIRED, LogFormats

FORMAT = "log_format"
_SEPARATOR = "\x1f"
_SECONDS = r"^\d{9,11}(?:\.\d+)?\z"
_READ = (*FIELDS, FORMAT)


def with_fields(lines: DataFrame, formats: LogFormats) -> DataFrame:
    """Add the fields of each line (:data:`blogdata.patterns.ingestion.log_declarations.FIELDS`) and log_format.

    All are null if the line fits no format; a format may lack some.
    """
    text = F.when(F.octet_length("raw") <= MAX_BYTES, F.col("raw").cast("string"))
    readable = F.when(F.is_valid_utf8(text) & ~text.contains(_SEPARATOR), text)
    names, parts = _parts(readable, formats.usual)
    found = lines.withColumn("_parts", parts)
    found = found.withColumn("_parts", F.when(F.size("_parts") == len(names), F.col("_parts")))
    left = F.when(F.col("_parts").isNull() & readable.isNotNull(), F.array(readable))
    found = found.withColumn("_left", F.get(F.transform(left, lambda line: _rare(line, formats)), F.lit(0)))
    usual = _read_from(F.col("_parts"), names, formats.usual)
    fields = {
        name: F.when(F.col("_parts").isNotNull(), column).otherwise(F.get("_left", F.lit(at)))
        for at, (name, column) in enumerate(zip(_READ, usual, strict=True))
    }
    return found.withColumns(fields).drop("_parts", "_left")


def time_of(text: Column) -> Column:
    """Parse the time of a line, a stamp, ISO 8601, or seconds since 1970, as TIMESTAMP; null for anything else."""
    others = F.transform(
        F.array(text), lambda one: F.when(one.rlike(_SECONDS), _from_seconds(one)).otherwise(iso_time(one))
    )
    return F.when(text.contains("/"), log_time(text)).otherwise(F.get(others, F.lit(0)))


def misfit(text: Column, formats: LogFormats, impossible: Column) -> Column:
    """Build the reason of a line that fits no format, or whose fields are impossible."""
    found = F.when(text.contains(_SEPARATOR), F.lit("not_combined_log:control_character"))
    body = F.regexp_replace(text, f"^{PREFIX}", "")
    objects = F.transform(F.array(F.try_parse_json(body)), lambda one: _misfit_of_object(one, formats, impossible))
    found = found.when(body.startswith("{"), F.get(objects, F.lit(0)))
    for log_format in formats.texts:
        fits = text.rlike(rf"^{log_format.line}\s*+\z")
        found = found.when(fits, F.concat(F.lit(f"not_{log_format.name}_log:"), impossible))
    for one in formats.misfits:
        found = found.when(text.rlike(f"^{one.pattern}"), F.lit(one.reason))
    return found


def _parts(text: Column, formats: Sequence[LogFormat]) -> tuple[list[str], Column]:
    """Split a line into what its format captures; a line that fits none is not split into so many parts."""
    # One expression for all: of the groups of a field at most one takes part in a match, all others are empty.
    line, groups = "|".join(one.line for one in formats), [field for one in formats for field in one.groups]
    names = [name for name in CAPTURED if name in groups or name in FIELDS]
    # The status is always there: its place among the formats tells which of them it is.
    marks = [
        ("." if name == "status" else "").join(f"${at}" for at, field in enumerate(groups, start=1) if field == name)
        for name in names
    ]
    replaced = F.regexp_replace(text, rf"^(?:{line})\s*+\z", _SEPARATOR.join(marks))
    return names, F.split(replaced, _SEPARATOR, -1)


def _rare(line: Column, formats: LogFormats) -> Column:
    """Read a line that fits none of the usual formats."""
    body = F.regexp_replace(line, f"^{PREFIX}", "")
    objects = F.transform(F.array(F.try_parse_json(body)), lambda one: _read_object(one, formats.objects))
    names, parts = _parts(line, formats.rare)
    texts = F.transform(
        F.array(parts),
        lambda one: F.when(F.size(one) == len(names), F.array(*_read_from(one, names, formats.rare))),
    )
    comment = F.array(*[F.lit(None).cast("string")] * len(FIELDS), F.lit(COMMENT))
    return (
        F.when(body.startswith("{"), F.get(objects, F.lit(0)))
        .when(body.rlike(COMMENTS), comment)
        .otherwise(F.get(texts, F.lit(0)))
    )


def _read_from(parts: Column, names: Sequence[str], formats: Sequence[LogFormat]) -> list[Column]:
    """Build the fields of a split line, and the name of its format."""
    captured = {name: F.get(parts, F.lit(at)) for at, name in enumerate(names)}
    status = captured["status"]
    place = F.instr(F.translate(status, "123456789", "0" * 9), "0")
    name = F.element_at(F.array(*(F.lit(one.name) for one in formats)), place)
    captured["status"] = F.translate(status, ".", "")
    for optional in OPTIONAL:
        captured[optional] = F.when(captured[optional] != "", _without_quote(captured[optional]))
    if "date" in names:
        day = F.concat(captured["date"], F.lit("T"), captured["time"], F.lit("Z"))
        captured["time"] = F.when(captured["date"] != "", day).otherwise(captured["time"])
    if "method" in names:
        request = _request(captured["method"], captured["target"], captured.get("query", F.lit("")))
        captured["request"] = F.when(captured["request"] != "", captured["request"]).otherwise(request)
    agent = captured["agent"]
    codings = {at: one.coding for at, one in enumerate(formats, start=1) if one.coding}
    for coding in sorted(set(codings.values())):
        plain = F.translate(agent, "+", " ") if coding == "plus" else _unescaped(agent)
        encoded = place.isin(*(at for at, used in codings.items() if used == coding))
        captured["agent"] = F.when(encoded, plain).otherwise(captured["agent"])
    return [*(captured[field] for field in FIELDS), name]


def _read_object(document: Column, formats: Sequence[JsonFormat]) -> Column:
    """Build the fields of a JSON object and the name of its format, null if it fits none."""
    reads = F.array(*(_struct(document, one) for one in formats))
    complete = F.filter(reads, lambda read: reduce(Column.__and__, (_is_there(read[name]) for name in REQUIRED)))
    return F.get(F.transform(complete, lambda read: F.array(*(read[name] for name in _READ))), F.lit(0))


def _misfit_of_object(document: Column, formats: LogFormats, impossible: Column) -> Column:
    """Build the reason of a JSON object: what the nearest format lacks."""
    reads = F.array(*(_struct(document, one) for one in formats.objects))
    judged = F.transform(
        reads,
        lambda read: F.struct(
            reduce(Column.__add__, (_is_there(read[name]).cast("int") for name in REQUIRED)).alias("fits"),
            F.coalesce(*(F.when(~_is_there(read[name]), F.lit(name)) for name in REQUIRED), impossible).alias("field"),
        ),
    )
    names = F.array(*(F.lit(one.name) for one in formats.objects))
    nearest = F.array_position(judged["fits"], F.array_max(judged["fits"])).cast("int")
    reason = F.concat(
        F.lit("not_"), F.element_at(names, nearest), F.lit("_log:"), F.element_at(judged["field"], nearest)
    )
    unreadable = F.lit(f"not_{formats.objects[-1].name}_log:{OBJECT}")
    is_object = F.coalesce(F.schema_of_variant(document).startswith("OBJECT"), F.lit(False))
    return F.when(is_object, reason).otherwise(unreadable)


def _struct(document: Column, log_format: JsonFormat) -> Column:
    captured = {}
    for name, paths in log_format.paths.items():
        values = [F.try_variant_get(document, _place(path), "string") for path in paths]
        dash = [F.lit("-")] if name in log_format.dashes else []
        captured[name] = F.coalesce(*values, *dash)
    nothing = F.lit(None).cast("string")
    # Apache's directive for the time has brackets, also where it is a value of an object.
    captured["time"] = F.translate(captured["time"], "[]", "")
    address = captured["address"]
    before = F.when(address.contains(","), F.regexp_replace(address, r", ?[^,]*\z", ""))
    captured["address"] = F.regexp_replace(address, "(?s)^.*, ?", "")
    captured["forwarded"] = F.coalesce(captured.get("forwarded", nothing), before)
    composed = _request(*(captured.get(name, nothing) for name in ("method", "target", "query")))
    captured["request"] = F.coalesce(captured.get("request", nothing), composed)
    captured[FORMAT] = F.lit(log_format.name)
    return F.struct(*(captured.get(name, nothing).alias(name) for name in _READ))


def _place(path: Sequence[str | int]) -> str:
    return "$" + "".join(f"[{key}]" if isinstance(key, int) else f'["{key}"]' for key in path)


def _from_seconds(text: Column) -> Column:
    return F.timestamp_micros((text.cast("decimal(20, 6)") * 1_000_000).cast("bigint"))


def _is_there(text: Column) -> Column:
    return F.coalesce(text != "", F.lit(False))


def _request(method: Column, target: Column, query: Column) -> Column:
    """Compose the request of a format that has its words one by one; null if one is missing."""
    plain = F.regexp_replace(F.coalesce(query, F.lit("")), r"^\?", "")
    asked = F.when(plain.isin("", "-"), F.lit("")).otherwise(F.concat(F.lit("?"), plain))
    words = F.concat(method, F.lit(" "), target, asked, F.lit(" HTTP/1.1"))
    return F.when((method != "") & (target != ""), words)


def _unescaped(agent: Column) -> Column:
    """Decode %20, and %2520 as CloudFront wrote it for years; a plus stays one."""
    return F.try_url_decode(F.replace(F.replace(agent, F.lit("%25"), F.lit("%")), F.lit("+"), F.lit("%2B")))


def _without_quote(captured: Column) -> Column:
    """Remove the opening quote with which an optional field is captured."""
    rest = F.substring(captured, F.lit(2), F.length(captured))
    return F.when(captured.startswith('"'), rest).otherwise(captured)
