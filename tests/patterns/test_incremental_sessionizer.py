from dataclasses import replace
from datetime import timedelta
from typing import Any

from blogdata.patterns.data_value.incremental_sessionizer import sessionize
from patterns.test_stateful_sessionizer import DDL, SPEC, at


def test_a_session_goes_on_in_the_next_partitions(spark: Any) -> None:
    spec = replace(SPEC, inactivity=timedelta(minutes=30))
    # Private from one page view on; the next session begins just over half an hour later, by a microsecond.
    times = (40, 65, 95, 125, 155 + 1 / 60_000_000)
    views = [("u", at(time), f"/{number}", number == 1, number) for number, time in enumerate(times)]
    hours = [f"2026-01-05T{number}" for number in range(10, 14)]
    one_by_one, pending = list[Any](), None
    for key in hours:
        mine = [each for each in views if f"{each[1]:%Y-%m-%dT%H}" == key]
        found = sessionize(spark.createDataFrame(mine, DDL), pending, spec, partitions=[key])
        rows = found.collect()
        one_by_one += rows
        pending = spark.createDataFrame([row for row in rows if not row.is_completed], found.schema)
    together = sessionize(spark.createDataFrame(views, DDL), None, spec, partitions=hours).collect()
    for computed in (one_by_one, together):
        assert sorted((row.hour, row.is_completed, row.pages, row.new_pages, row.private) for row in computed) == [
            (hours[0], False, 1, 1, False),
            (hours[1], False, 3, 2, True),
            (hours[2], False, 1, 1, False),
            (hours[2], True, 4, 1, True),
            (hours[3], True, 1, 0, False),
        ]
