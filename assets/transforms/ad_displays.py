"""Displayed ads: judging every landed line, and reading the typed columns of those that are displays.

How a line of JSON is read, and what counts as one object, is in :mod:`assets.transforms.json_lines`. All fields are
required, and all are strings.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.transforms import json_lines
from assets.transforms.visit_times import hour_of, impossible, iso_time
from blogdata.patterns.data_value import wrapper
from blogdata.patterns.error_management.dead_letter import RejectRule
from quality.contracts import landed
from quality.contracts.columns import AD, AD_IDENTIFIERS

TIME = "display_time"
REQUIRED = tuple(column.name for column in AD)
JUDGED = ("raw", "source_file", "source_offset", "arrival_hour", TIME, "display_hour", "reasons")

_TEXTS = tuple(name for name in REQUIRED if name != TIME)
_FIRST_LOOK = ", ".join(f"{name}: {'string' if name == TIME else 'variant'}" for name in REQUIRED)
_SECOND_LOOK = ", ".join(f"{name}: {'variant' if name == TIME else 'string'}" for name in REQUIRED)
# Judging has read the time already.
_DISPLAY = ", ".join(f"{field.name} {field.type}" for field in landed.AD if field.name != TIME)


def judge(lines: DataFrame) -> DataFrame:
    """Add to every landed line all reasons to reject it, and the time of the display if there is none.

    Returns the columns of :data:`JUDGED`, one row per input row.
    """
    read = json_lines.look(lines, _FIRST_LOOK).withColumn("_time", iso_time(json_lines.first()[TIME]))
    wrong = impossible(F.col("_time"), F.col("arrival_hour"))
    clean = F.col("_object") & json_lines.are_texts(_TEXTS, AD_IDENTIFIERS) & ~wrong
    is_text = json_lines.is_text(F.col("_again")["plain"][TIME])
    rules = [
        *json_lines.field_rules(REQUIRED, AD_IDENTIFIERS, TIME),
        RejectRule(name=f"invalid_time:{TIME}", condition=is_text & F.col("_time").isNull()),
        RejectRule(name="impossible_time", condition=wrong),
    ]
    read = json_lines.judged(read, clean, json_lines.again(json_lines.text_of(), _SECOND_LOOK), rules)
    # The time of a rejected row cannot be trusted.
    time = F.when(F.size("reasons") == 0, F.col("_time"))
    return read.withColumns({TIME: time, "display_hour": hour_of(time)}).select(*JUDGED)


def parse(rows: DataFrame) -> DataFrame:
    """Read ad_id, page, visit_id and campaign of the judged rows that are displays; all other rows are dropped."""
    displays = rows.where(F.size("reasons") == 0).drop("reasons")
    text = F.col("raw").cast("string")
    read = displays.withColumn("_display", F.from_json(text, _DISPLAY, json_lines.JSON_OPTIONS))
    computed = {name: F.col("_display")[name] for name in _TEXTS}
    return wrapper.beside(read, computed).drop("_display")
