"""Detectors on the whole lineage: landing stops, a reader is not run, a job is slow, hours are half empty.

Flow Interruption Detector, Skew Detector, Lag Detector and SLA Misses Detector, each by its check, its event and its
finding, on real Delta commits and without Spark.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import dagster as dg
import pytest

from assets.streams.live_visits import STREAM
from blogdata.contract.partitions import Grain, key_of, start_of
from blogdata.errors.finding import Finding, Severity
from blogdata.patterns.error_management.checkpointer import open_checkpoint
from blogdata.planning.arrivals import Arrivals
from blogdata.planning.snapshot import landed
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.names import asset_key
from blogdata.watch import detectors
from blogdata.watch.findings import standing
from blogdata.watch.lag_detector import BEHIND
from blogdata.watch.reading import FLOW, LAG, QUIET, SLA, UNKNOWN, Reading
from blogdata.watch.timely_checks import deployment_of
from published import bronze, enriched, land, publish, read_by_stream, silver
from quality.contracts import EVERY
from sensors import watching as sensor

NOW = datetime.now(timezone.utc).replace(minute=30, second=0, microsecond=0)
HOUR = timedelta(hours=1)
Ticked = Callable[..., Any]


def key(hours_ago: int) -> str:
    """Return the hour that ended this many hours (and up to half an hour) ago."""
    return key_of(NOW - HOUR * (hours_ago + 1), Grain.HOUR)


@pytest.fixture
def ticked(tick: Any, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Ticked:
    """Runs single ticks at a time and stores their evaluations as the daemon does."""

    def evaluate(moment: datetime = NOW) -> Any:
        monkeypatch.setattr("sensors.watching._now", lambda: moment)
        data = tick(sensor.detector_readings)
        for event in data.asset_events:
            instance.report_runless_asset_event(event)
        return data

    return evaluate


def ended(hour: str) -> datetime:
    return start_of(hour, Grain.HOUR) + HOUR


def land_hours(lake: LakeResource, hours_ago: Iterable[int]) -> list[str]:
    """Land some hours, each five minutes after its end."""
    keys = [key(ago) for ago in hours_ago]
    for name in keys:
        folder = land(lake, "visits", name, {"a.json": "{}\n"})
        at = (ended(name) + HOUR / 12).timestamp()
        for file in ("a.json", "_SUCCESS"):
            os.utime(folder / file, (at, at))
    return keys


def bronze_hours(lake: LakeResource, keys: Sequence[str], *, at: datetime) -> int:
    """Publish the landed hours of bronze and its companions."""
    there = {one.key: one.fingerprint for one in landed(lake.landing_zone, "visits", Grain.HOUR)}
    counts = {name: {name: 1000} for name in keys}
    version = bronze(lake.lake, counts, landed=there, at=at)
    for dataset in ("bronze.dead_letters", "silver.late_visits"):
        publish(lake.lake, dataset, "arrival_hour", dict.fromkeys(keys, 0), inputs={"bronze.visits": version}, at=at)
    return version


def publish_hours(lake: LakeResource, keys: Sequence[str], *, at: datetime) -> None:
    """Publish hours of bronze and of all its readers."""
    read = bronze_hours(lake, keys, at=at)
    version = silver(lake.lake, dict.fromkeys(keys, 1000), read=read, at=at + HOUR / 60)
    enriched(lake.lake, keys, read=version, of="silver.visits", at=at + HOUR / 30)


def verdict(lake: LakeResource, detector: str, dataset: str, now: datetime = NOW) -> str:
    return detectors.READERS[detector](deployment_of(lake, now), EVERY[dataset]).verdict


def found(lake: LakeResource, now: datetime = NOW) -> dict[str, Finding]:
    return {one.identity: one for one in standing(deployment_of(lake, now))}


def shown(instance: dg.DagsterInstance, detector: str, dataset: str) -> dg.AssetCheckEvaluation:
    record = instance.get_latest_asset_check_evaluation_record(dg.AssetCheckKey(asset_key(dataset), detector))
    assert record is not None
    assert record.evaluation is not None
    return record.evaluation


def test_an_empty_deployment_is_quiet(lake: LakeResource, ticked: Ticked) -> None:
    assert ticked().skip_message == "nothing is detected"
    assert standing(deployment_of(lake, NOW)) == []
    read = detectors.readings(deployment_of(lake, NOW))
    assert {one.verdict for one in read} <= {UNKNOWN, QUIET}


def test_a_flow_that_stops_is_seen_everywhere(lake: LakeResource, ticked: Ticked, instance: dg.DagsterInstance) -> None:
    keys = land_hours(lake, range(26, -1, -1))
    publish_hours(lake, keys, at=NOW)
    ticked()
    assert shown(instance, FLOW, "bronze.visits").passed
    later = NOW + 5 * HOUR
    assert "bronze.visits flow" in ticked(later).skip_message
    evaluation = shown(instance, FLOW, "bronze.visits")
    assert (evaluation.passed, evaluation.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "no data came since" in (evaluation.description or "")
    finding = found(lake, later)["flow/bronze.visits"]
    assert (finding.severity, finding.owner) == (Severity.CRITICAL, "team:platform")
    # An unchanged finding is not told again; it ends when data arrive.
    told = [event.check_name for event in ticked(later + timedelta(minutes=2)).asset_events]
    assert FLOW not in told
    land_hours(lake, [-5])
    ticked(later + timedelta(minutes=4))
    assert shown(instance, FLOW, "bronze.visits").passed


def test_a_reader_that_is_not_run_lags(lake: LakeResource, ticked: Ticked, instance: dg.DagsterInstance) -> None:
    publish_hours(lake, land_hours(lake, range(5, 2, -1)), at=ended(key(3)) + HOUR / 6)
    waiting = land_hours(lake, range(2, -1, -1))
    ticked()
    # The first of them has waited for two hours and 25 minutes; one hour is promised.
    finding = found(lake)["lag/bronze.visits"]
    assert f"3 landed partitions of visits are not read (3 partitions: {waiting[0]}" in finding.what
    assert not shown(instance, LAG, "bronze.visits").passed
    # Bronze continues, one hour per commit, and silver does not.
    versions = [bronze_hours(lake, [name], at=NOW + HOUR / 60 * place) for place, name in enumerate(waiting)]
    assert verdict(lake, LAG, "bronze.visits") == QUIET
    assert verdict(lake, LAG, "silver.visits", NOW + 1.9 * HOUR) == QUIET
    assert "lag/silver.visits" in found(lake, NOW + 2.1 * HOUR)
    silver(lake.lake, dict.fromkeys(waiting, 1000), read=versions[-1])
    assert verdict(lake, LAG, "silver.visits", NOW + 2.1 * HOUR) == QUIET


def test_late_hours_are_told_by_cause(lake: LakeResource, ticked: Ticked, instance: dg.DagsterInstance) -> None:
    publish_hours(lake, land_hours(lake, range(26, 1, -1)), at=ended(key(26)))
    assert verdict(lake, SLA, "bronze.visits", NOW - 0.6 * HOUR) == QUIET
    late = land_hours(lake, [1, 0])
    now = NOW + 1.6 * HOUR
    ticked(now)
    # Both hours have landed, but bronze has not published them, so its readers wait.
    assert verdict(lake, SLA, "bronze.visits", now) == "job late"
    assert verdict(lake, SLA, "silver.visits", now) == "input late"
    assert not shown(instance, SLA, "bronze.visits").passed
    findings = found(lake, now)
    assert "sla/silver.visits" not in findings
    assert findings["sla/bronze.visits"].what.startswith(f"{late[0]} is not published ")
    assert "the same below it: " in findings["sla/bronze.visits"].what
    assert "silver.visits" in findings["sla/bronze.visits"].what


def test_an_hour_that_does_not_land_is_the_producers(lake: LakeResource) -> None:
    bronze_hours(lake, land_hours(lake, range(26, 0, -1)), at=ended(key(26)))
    assert verdict(lake, SLA, "bronze.visits", NOW + 0.4 * HOUR) == QUIET
    now = NOW + 0.6 * HOUR
    assert verdict(lake, SLA, "bronze.visits", now) == "input late"
    read = detectors.sla(deployment_of(lake, now), EVERY["bronze.visits"])
    assert f"{key(0)} is not published" in read.what
    assert "landing.visits has not come" in read.what
    # Missing data are reported once, by the dataset that misses them.
    assert [name for name in found(lake, now) if name.endswith("/bronze.visits")] == ["flow/bronze.visits"]


NOON = datetime(2026, 1, 5, 12, 30, tzinfo=timezone.utc)
H = [f"2026-01-05T{hour:02d}" for hour in range(24)]


def missing(lake: LakeResource) -> dict[str, list[str]]:
    found = Arrivals.of(EVERY["bronze.visits"], lake.landing_zone).overdue(lake.events, NOON)
    return {why: list(keys) for why, keys in found.without.items()}


def test_overdue_hours_are_told_once_until_they_come(
    lake: LakeResource, ticked: Ticked, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    """Readiness Marker: data without a flag, and a gap."""
    land(lake, "visits", H[6], {"a.json": "{}\n"}, flag=False)
    land(lake, "visits", H[9], {"a.json": "{}\n"})
    ticked(NOON)
    told = f"{H[6]} (data without _SUCCESS), {H[7]}..{H[8]} (not there, though a later one is)"
    assert told in capsys.readouterr().err
    check = shown(instance, "overdue", "landing.visits")
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert (check.metadata["flag"].value, check.metadata["overdue"].value) == ([H[6]], 3)
    ticked(NOON)
    assert "overdue" not in capsys.readouterr().err
    for hour in H[6:9]:
        land(lake, "visits", hour, {})
    ticked(NOON)
    assert "landing.visits, overdue: over" in capsys.readouterr().err
    assert shown(instance, "overdue", "landing.visits").passed


def test_an_hour_with_a_refused_link_is_overdue(lake: LakeResource) -> None:
    (land(lake, "visits", H[3], {"a.json": "{}\n"}) / "b.json").symlink_to("/etc/passwd")
    (lake.landing_path / "visits" / "date=2026-01-06").symlink_to("/etc")
    assert missing(lake) == {"entry": [H[3], "2026-01-06"]}


def test_a_stream_that_is_not_run_lags(lake: LakeResource) -> None:
    """Files that no committed batch of a stream has read, since the landing of the oldest."""
    now, contract = datetime.now(timezone.utc), EVERY["bronze.visits_live"]
    names = [f"{name}.json" for name in "abc"]
    folder = land(lake, "visits", H[10], dict.fromkeys([*names, ".hidden.json", "access.log"], ""))
    first, second, third = (folder / name for name in names)

    def lag(moment: datetime) -> Reading:
        return detectors.lag(deployment_of(lake, moment), contract)

    # Without a checkpoint the stream is not in use.
    assert lag(now + timedelta(hours=1)).verdict == UNKNOWN
    checkpoint = open_checkpoint(lake.checkpoints_path, STREAM.spec(lake.landing_path))
    read_by_stream(checkpoint, first, second, planned=2, committed=1)
    assert not lag(now + timedelta(minutes=4)).stands
    reading = lag(now + timedelta(minutes=6))
    assert (reading.verdict, reading.figures["behind"]) == (BEHIND, 2)
    assert "2 files of visits are not read (date=2026-01-05/hour=10)" in reading.what
    read_by_stream(checkpoint, first, second, third, planned=3, committed=3)
    assert lag(now + timedelta(hours=1)).value == 0
