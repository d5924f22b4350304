from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from blogdata.errors.remedies import Remedy
from blogdata.watch.lag_detector import BEHIND, Offsets, Position, detect
from blogdata.watch.reading import QUIET

NOW = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
WITHIN = timedelta(minutes=10)


def topic(waits: Sequence[float]) -> Offsets:
    """Return the offsets of a message broker's topic: seconds that each of its partitions waits."""
    positions = [
        Position(partition=str(number), behind=int(wait), since=NOW - timedelta(seconds=wait) if wait else None)
        for number, wait in enumerate(waits)
    ]
    return Offsets(unit="records", remedy=Remedy("start the reader"), positions=positions)


def test_one_slow_partition_is_not_averaged_away() -> None:
    reading = detect("silver.views", [topic([1.0] * 99 + [3600.0])], within=WITHIN, now=NOW)
    assert (reading.verdict, reading.value, reading.figures["p95"]) == (BEHIND, 3600.0, 1.0)
    assert reading.partitions[0] == "99"
    slow = detect("silver.views", [topic([3000.0 + number for number in range(100)])], within=WITHIN, now=NOW)
    assert (slow.value, slow.figures["p95"]) == (3099.0, 3094.0)


def test_a_reader_within_the_bound_is_quiet() -> None:
    reading = detect("silver.views", [topic([600.0, 0.0])], within=WITHIN, now=NOW)
    assert (reading.verdict, reading.value, reading.figures["behind"]) == (QUIET, 600.0, 600)
    assert detect("silver.views", [topic([601.0])], within=WITHIN, now=NOW).verdict == BEHIND
