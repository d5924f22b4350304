"""Times of visits as Columns: parsing ISO 8601 and the stamps of logs, hour keys, and the check for impossible times.

ISO 8601 means the extended date-time with an offset or Z: seconds optional, a fraction after `.` or `,` (kept to
microseconds), `T` and `Z` in upper case, offsets up to 18 hours, no 24:00 and no leap second. Spark's own cast is
far more lenient: it takes a date alone, an epoch, a region name, and text without any offset.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from pyspark.sql import Column
from pyspark.sql import functions as F

from blogdata.patterns.error_management.late_data_detector import CLOCK_TOLERANCE

EARLIEST = datetime(2000, 1, 1, tzinfo=timezone.utc)
_LATEST = timedelta(hours=1) + CLOCK_TOLERANCE
"""Latest plausible event time, measured from the start of its hour of arrival."""

_USUAL = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)\z"
_UNUSUAL = r"^(\d{4}-\d\d-\d\dT\d\d:\d\d)(?:()|(:\d\d),(\d+))(Z|[+-]\d\d(?::?\d\d)?)\z"


def iso_time(text: Column) -> Column:
    """Parse an ISO 8601 date-time with offset or Z as TIMESTAMP; null for anything else."""
    part = [F.regexp_extract(text, _UNUSUAL, group) for group in range(6)]
    seconds = F.when(part[3] == "", F.lit(":00")).otherwise(F.concat(part[3], F.lit("."), part[4]))
    rewritten = F.when(part[0] != "", F.concat(part[1], seconds, part[5]))
    return F.when(text.rlike(_USUAL), text).otherwise(rewritten).try_cast("timestamp")


def log_time(text: Column) -> Column:
    """Parse the stamp of a log line, `17/May/2015:10:05:03 +0545`; null for a day or an offset that does not exist.

    A leap second (`23:59:60`) counts as the second before: it stays in the hour that the log has it in.
    """
    return F.try_to_timestamp(F.replace(text, F.lit(":60 "), F.lit(":59 ")), F.lit("dd/MMM/yyyy:HH:mm:ss Z"))


def impossible(time: Column, arrival_hour: Column) -> Column:
    """Build the condition that a time is before 2000, or after the end of its arrival hour plus the clock tolerance.

    For text that is no hour (`2026-01-31T05`) it is null, unless the time is too early.
    """
    latest = (F.unix_seconds(start_of(arrival_hour)) + F.lit(int(_LATEST.total_seconds()))) * F.lit(1_000_000)
    return (time < F.lit(EARLIEST)) | (F.unix_micros(time) > latest)


def start_of(hour: Column) -> Column:
    """Build the TIMESTAMP at which an hour (`2026-01-31T05`) starts; null for text that is no hour."""
    return F.concat(hour, F.lit(":00:00Z")).try_cast("timestamp")


def hour_of(time: Column) -> Column:
    """Build the hour key (`2026-01-31T05`) of a TIMESTAMP; Spark's time zone is UTC."""
    return F.date_format(time, "yyyy-MM-dd'T'HH")
