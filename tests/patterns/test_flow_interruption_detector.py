from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from blogdata.contract.partitions import Grain
from blogdata.contract.watch import Flow
from blogdata.landing.readiness_marker import LandedFile, LandedPartition
from blogdata.watch import flow_interruption_detector as detector
from blogdata.watch.reading import Reading
from toy import entry

START = datetime(2026, 1, 5, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


def hourly(count: int, *, without: Sequence[int] = ()) -> list[datetime]:
    return [START + HOUR * number for number in range(count) if number not in without]


def read(came: Sequence[datetime], now: datetime, spec: Flow | None = None) -> Reading:
    return detector.detect("silver.views", spec or Flow(), came, least=2 * HOUR, now=now)


def landed(key: str, written: datetime) -> LandedPartition:
    at = int(written.timestamp() * 1e9)
    files = (LandedFile(name="0.json", size=1, mtime_ns=at, ctime_ns=at),)
    return LandedPartition(key=key, folder=Path(key), lacks=None, files=files, links=(), fingerprint="", flag=None)


def test_silence_beyond_the_usual_pause_is_found() -> None:
    came = hourly(100)
    assert not read(came, came[-1] + 2 * HOUR).stands
    reading = read(came, came[-1] + 2 * HOUR + timedelta(minutes=1))
    assert (reading.verdict, reading.bound) == (detector.INTERRUPTED, 7200.0)
    assert "since 2026-01-09 03:00 UTC" in reading.what


def test_continuous_data_is_judged_by_declaration() -> None:
    every = Flow(every=timedelta(minutes=5))
    came = [START, START + timedelta(minutes=1)]
    assert not read(came, came[-1] + timedelta(minutes=5), every).stands
    assert read(came, came[-1] + timedelta(minutes=6), every).stands


def test_nightly_pauses_are_learned_and_an_outage_is_not() -> None:
    nightly = [moment for moment in hourly(24 * 14) if 6 <= moment.hour < 22]
    assert not read(nightly, nightly[-1] + 9 * HOUR).stands
    assert read(nightly, nightly[-1] + 19 * HOUR).stands
    came = hourly(24 * 21, without=range(100, 160))
    assert read(came, came[-1] + 3 * HOUR).stands


def test_the_same_rows_again_are_no_data() -> None:
    history = [
        entry("silver.views", key, rows=rows, committed_at=START + at * HOUR)
        for at, (key, rows) in enumerate([("a", 5), ("a", 5), ("b", 0), ("a", 6)])
    ]
    assert detector.published(history[:3]) == [START]
    assert detector.published(history) == [START, START + 3 * HOUR]


def test_a_daily_copy_of_hours_is_usual() -> None:
    # The day's hours arrive at three in the following night.
    partitions = [
        landed(f"{key:%Y-%m-%dT%H}", key.replace(hour=0) + 27 * HOUR + timedelta(seconds=key.hour))
        for key in hourly(24 * 30)
    ]
    now = START + 24 * 30 * HOUR + 26 * HOUR
    assert not read(detector.landed(partitions, Grain.HOUR, now), now).stands
    assert read(detector.landed(partitions, Grain.HOUR, now + 48 * HOUR), now + 48 * HOUR).stands
