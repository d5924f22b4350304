"""The devices: judging the lines of a delivery, and one row per device.

Decisions: `type` and `version` are required, and may be JSON numbers, as visits may name a version by a
number. Of several rows of a device the first by position counts, the others are only counted.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.transforms import delivered_lines
from patterns.error_management import dead_letter
from patterns.error_management.dead_letter import Rule

KEY = ("type", "version")
FIELDS = ("type", "full_name", "version")


def judge(lines: DataFrame) -> DataFrame:
    """Read every line of a delivery into typed columns, with all reasons to reject it.

    Args:
        lines: raw BINARY, source_file STRING (its suffix tells JSON from CSV), source_offset BIGINT,
            load_date STRING.

    Returns:
        Rows of bronze.devices, one per line; the header of a CSV file is a row with the reason `header`.
        Reasons are one about the line (see `delivered_lines.read`), or all of `missing_field:<field>` and
        `wrong_type:<field>`.
    """
    read = delivered_lines.read(lines, FIELDS)
    wrong = {field: F.array_contains(delivered_lines.WRONG_TYPES, field) for field in FIELDS}
    rules = [
        *(
            Rule(name=f"missing_field:{field}", condition=F.col(field).isNull() | (F.trim(field) == ""))
            for field in KEY
        ),
        *(Rule(name=f"wrong_type:{field}", condition=wrong[field]) for field in FIELDS),
    ]
    line = F.col(delivered_lines.LINE_REASON)
    return read.select(
        "raw",
        "source_file",
        "source_offset",
        "load_date",
        *FIELDS,
        F.when(line.isNotNull(), F.array(line)).otherwise(dead_letter.reasons(rules)).alias("reasons"),
    )


def unique(rows: DataFrame) -> DataFrame:
    """Keep one row per device.

    Args:
        rows: Valid rows of bronze.devices.

    Returns:
        Rows of silver.devices; the sum of `occurrences` is the number of rows given.
    """
    position = F.struct("source_file", "source_offset")
    return rows.groupBy(F.col("type").alias("device_type"), F.col("version").alias("device_version")).agg(
        F.min_by("full_name", position).alias("full_name"), F.count(F.lit(1)).alias("occurrences")
    )
