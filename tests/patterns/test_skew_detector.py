from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

from blogdata.contract.partitions import Grain
from blogdata.contract.watch import Skew
from blogdata.watch.skew_detector import FEWER, MORE, UNEVEN, detect, unevenness, volumes

START = datetime(2026, 1, 5, tzinfo=timezone.utc)


def hours(weeks: int, rows: float = 5000, growth: float = 0.0) -> dict[str, int]:
    """Make hourly volumes with a rhythm: a tenth at night, six tenths on weekends."""
    volume = {}
    for number in range(weeks * 168):
        moment = START + timedelta(hours=number)
        times = (0.1 if moment.hour < 6 else 1.0) * (0.6 if moment.weekday() >= 5 else 1.0)
        volume[f"{moment:%Y-%m-%dT%H}"] = round(rows * times * (1 + growth) ** (number / 168) * (1 + number % 7 / 50))
    return volume


def judged(rows: Mapping[str, int], *partitions: str) -> dict[str, str]:
    readings = volumes(rows, partitions or rows, grain=Grain.HOUR, tolerance=0.5)
    return {reading.partition: reading.verdict for reading in readings if reading.verdict}


def test_rhythm_growth_and_few_rows_are_no_skew() -> None:
    assert judged(hours(8)) == judged(hours(8, growth=0.3)) == judged(hours(8, growth=-0.25)) == {}
    assert judged({**hours(6, rows=90), "2026-02-12T10": 0}) == {}


def test_a_third_of_the_rows_is_skew() -> None:
    rows = hours(6)
    rows["2026-02-12T10"] //= 3
    rows["2026-02-12T11"] //= 10
    rows["2026-02-13T10"] *= 3
    assert judged(rows) == {"2026-02-12T10": FEWER, "2026-02-12T11": FEWER, "2026-02-13T10": MORE}
    reading = detect("bronze.views", Skew(), volumes(rows, [*rows][:-72], grain=Grain.HOUR, tolerance=0.5))
    assert (reading.verdict, [*reading.partitions]) == (FEWER, ["2026-02-12T10", "2026-02-12T11"])
    assert reading.what.startswith("2026-02-12T11 has "), "the worst one"


def test_a_bad_partition_does_not_become_usual() -> None:
    rows = hours(8)
    rows["2026-02-12T10"] = 10
    # A week later, and an hour later, good partitions are not compared with the bad one.
    assert judged(rows, "2026-02-19T10", "2026-02-12T11", "2026-02-13T10") == {}


def test_an_outage_of_days_does_not_become_usual() -> None:
    rows = hours(8)
    for hour in range(72):
        rows[f"{datetime(2026, 2, 10) + timedelta(hours=hour):%Y-%m-%dT%H}"] = 0  # noqa: DTZ001 - only keys are made
    verdicts = judged(rows)
    assert set(verdicts.values()) == {FEWER}
    assert {key[:10] for key in verdicts} == {"2026-02-10", "2026-02-11", "2026-02-12"}


def test_a_hot_key_is_found() -> None:
    counts = {f"2026-01-05T{hour:02d}": [100 + (hour * key) % 9 for key in range(16)] for hour in range(24)}
    assert all(not reading.verdict for reading in unevenness(counts, counts))
    counts["2026-01-05T23"][3] += 1600
    (reading,) = unevenness(counts, ["2026-01-05T23"])
    assert (reading.verdict, round(reading.value, 1)) == (UNEVEN, 1.9)
