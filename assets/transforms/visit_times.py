"""Hours of times as Columns."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def hour_of(time: Column) -> Column:
    """Build the hour key (`2026-01-31T05`) of a TIMESTAMP; Spark's time zone is UTC."""
    return F.date_format(time, "yyyy-MM-dd'T'HH")
