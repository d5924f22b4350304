from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import pytest

from blogdata.watch.reading import QUIET, Reading
from blogdata.watch.sla_misses_detector import INPUT_LATE, JOB_LATE, LEAST_JOBS, Delivery, detect

END = datetime(2026, 1, 5, 1, tzinfo=timezone.utc)
PROMISE = timedelta(hours=2)
MINUTE = timedelta(minutes=1)


def delivery(input_at: int | None, published_at: int | None) -> Delivery:
    """Build the delivery of an hour, with times in minutes since its end."""
    read, published = (None if at is None else END + at * MINUTE for at in (input_at, published_at))
    return Delivery(
        partition="2026-01-05T00", ended=END, input_at=read, published_at=published, waits_for="bronze.visits"
    )


def read(late: Delivery, minutes: int, history: Sequence[float] = ()) -> Reading:
    return detect("silver.visits", [late], promise=PROMISE, now=END + minutes * MINUTE, jobs=history)


@pytest.mark.parametrize(
    ("input_at", "published_at", "now", "verdict"),
    [
        (5, 10, 130, QUIET),
        (5, None, 119, QUIET),
        (5, None, 121, JOB_LATE),
        (5, 200, 210, JOB_LATE),
        (None, None, 119, QUIET),
        (None, None, 121, INPUT_LATE),
        (150, None, 155, INPUT_LATE),
        (150, 160, 170, INPUT_LATE),
        # Late input, then a job that alone took longer than promised.
        (150, 300, 301, JOB_LATE),
        # The input came early, as when a whole day is delivered at once.
        (-30, 100, 130, QUIET),
    ],
)
def test_a_late_input_is_told_from_a_late_job(
    input_at: int | None, published_at: int | None, now: int, verdict: str
) -> None:
    assert read(delivery(input_at, published_at), now).verdict == verdict


def test_input_too_late_for_a_usual_job_is_late() -> None:
    half_an_hour = [1800.0] * LEAST_JOBS
    assert read(delivery(100, 128), 130, half_an_hour).verdict == INPUT_LATE
    assert read(delivery(80, 128), 130, half_an_hour).verdict == JOB_LATE
