"""The validity periods of device names, from their deliveries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from assets.silver import devices
from quality.contracts import CONTRACTS

DEVICES = CONTRACTS["silver.devices"]
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
Listed = Sequence[tuple[str, str | None]]


def midnight(day: str) -> datetime:
    return datetime.fromisoformat(f"{day}T00:00:00")


def versions_by_hand(deliveries: Sequence[tuple[str, Listed]]) -> list[list[Any]]:
    """Return each version: its name, its count in the newest list, its first list, and its validity period."""
    kept: list[tuple[str, Listed]] = []
    for day, listed in deliveries:
        kept = [*(delivery for delivery in kept if delivery[0] < day), (day, listed)]
    found: list[list[Any]] = []
    for day, listed in kept:
        left, since = dict(reversed(listed)), None if not found else midnight(day)
        times = Counter(version for version, _ in listed)
        for row in (row for row in found if row[-1] is None):
            if row[0] in left and left[row[0]] == row[1]:
                del left[row[0]]
                row[2] = times[row[0]]
            else:
                row[2], row[-1] = 0, midnight(day)
        found += [[version, name, times[version], day, since, None] for version, name in left.items()]
    return found


def a_list(spark: Any, *rows: tuple[str, str, str | None]) -> Any:
    """Make the judged rows of a delivery: type, version and name, followed by a rejected row."""
    columns = "type STRING, version STRING, full_name STRING, source_file STRING, source_offset INT"
    columns += ", reasons ARRAY<STRING>"
    judged: list[tuple[Any, ...]] = [(*row, "d.csv", place, []) for place, row in enumerate(rows)]
    return spark.createDataFrame([*judged, (None, "1", "x", "d.csv", len(rows), ["missing_field:type"])], columns)


listed = st.lists(st.tuples(st.sampled_from("123"), st.sampled_from(["One", "Two", None])), max_size=5)


@hypothesis(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deliveries=st.lists(st.tuples(st.sampled_from(DAYS), listed), min_size=3, max_size=5))
def test_versions_match_the_lists_in_any_order(spark: Any, deliveries: Any) -> None:
    table = spark.createDataFrame([], DEVICES.ddl)
    for number, (day, rows) in enumerate(deliveries):
        delivered = a_list(spark, *(("tv", version, name) for version, name in rows))
        found = devices.versions(delivered, table, day).collect()
        table = spark.createDataFrame(found, DEVICES.ddl)
        expected = [("tv", version, name, *more) for version, name, *more in versions_by_hand(deliveries[: number + 1])]
        assert Counter(map(tuple, found)) == Counter(expected)
