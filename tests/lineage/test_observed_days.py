"""Days that a run and a stream publish, as the observers and detectors see them.

Patterns: Offline Observer, SLA Misses Detector.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import dagster as dg
import pytest

from assets.detector_checks import deployment_of, evaluation_of
from assets.streams import STREAMS
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.patterns.observability.reading import QUIET, Reading
from blogdata.patterns.observability.sla_misses_detector import EVENT_TIME, INPUT_LATE, JOB_LATE, PROCESSING_TIME
from blogdata.planning import detectors
from blogdata.publish.watch import StreamSla
from lineage import live
from lineage.command_line import Said
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from quality.contracts import EVERY
from quality.profiles import DRIFT, check_name, profiles
from resources.spark import SparkResource

COMPUTED, STREAMED = "silver.visits_enriched", "silver.visits_enriched_live"
CHECKS = {check_name(DRIFT, name) for name in (COMPUTED, STREAMED)}
ORDINARY, MOVED = ("Firefox", "Chrome", "Safari"), ("Opera", "Opera", "Safari")
MINUTES = 60


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    """Three ordinary days, then one of other visitors."""
    made = deploy("observed-days")
    for day in ("2026-01-05", "2026-01-06", "2026-01-07"):
        land(made, day, ORDINARY)
    land(made, "2026-01-08", MOVED)
    publish(made)
    return made


def land(deployment: Deployment, day: str, browsers: Sequence[str]) -> None:
    """Land an hour of a day, whose visitors have these browsers in turn."""
    events = [
        event(
            "10:00",
            page,
            event_time=f"{day}T10:{minute:02d}:00Z",
            context={"technical": {"browser": browsers[(minute + at) % 3], "device_type": "PC"}},
        )
        for minute in range(MINUTES)
        for at, page in enumerate(("/a", "/b", "/c"))
    ]
    deployment.land(f"{day}T10", events)


def publish(deployment: Deployment) -> None:
    """Publish what has landed, by a run and by a stream."""
    assert deployment.run(for_=(COMPUTED,)).ok
    live.tick(deployment, STREAMS["enriched"])


def look(deployment: Deployment) -> dict[str, dg.AssetCheckEvaluation]:
    """Profile what is new, as the schedule does; return the failed checks by name."""
    settings = deployment.settings
    resources = {
        "spark": SparkResource(home=str(settings.home)),
        "lake": LakeResource(root=str(settings.lake), landing=str(settings.landing)),
    }
    with dg.DagsterInstance.ephemeral() as instance:
        done = dg.materialize([profiles], resources=resources, instance=instance)
    return {one.check_name: one for one in done.get_asset_check_evaluations() if not one.passed}


def test_a_day_of_other_visitors_fails_its_check_until_newer_rows_come(deployment: Deployment, said: Said) -> None:
    code, out, _ = said("profile", "--json")
    found = {one["dataset"]: [(each["period"], each["column"]) for each in one["drifts"]] for one in json.loads(out)}
    assert code == 0
    assert {dataset: drifts for dataset, drifts in found.items() if drifts} == {
        COMPUTED: [("2026-01-08", "browser")],
        STREAMED: [("2026-01-08", "browser")],
    }, "the three days before it are ordinary"
    failed = look(deployment)
    assert failed.keys() == CHECKS, "a look that finds nothing new does not hide it"
    assert {one.severity for one in failed.values()} == {dg.AssetCheckSeverity.WARN}
    assert all((one.description or "").startswith("2026-01-08: browser (") for one in failed.values())
    assert said("profile")[1].count("browser on 2026-01-08") == 2
    land(deployment, "2026-01-09", ORDINARY)
    publish(deployment)
    assert look(deployment) == {}, "one bad day is no norm, and the next good one is not reported"


def test_streamed_tables_are_profiled_like_the_computed_ones() -> None:
    assert EVERY[STREAMED].profiled == EVERY[COMPUTED].profiled
    assert EVERY["silver.sessions_live"].profiled == EVERY["gold.sessions_daily"].profiled


def judged(deployment: Deployment, now: datetime, **promised: timedelta) -> Reading:
    """Read the SLA of the streamed table at a time, with another promise."""
    contract = EVERY[STREAMED]
    assert isinstance(contract.watch.sla, StreamSla)
    sla = replace(contract.watch.sla, **promised)
    access = LakeResource(root=str(deployment.settings.lake), landing=str(deployment.landing))
    return detectors.sla(deployment_of(access, now), replace(contract, watch=replace(contract.watch, sla=sla)))


def test_a_stream_is_told_from_its_files_if_rows_come_late(deployment: Deployment) -> None:
    """The last day landed when the stream had been started; those before it are history, and no promise."""
    now, minute = datetime.now(timezone.utc), timedelta(minutes=1)
    in_time = judged(deployment, now, after_landing=60 * minute)
    assert (in_time.verdict, in_time.partitions) == (QUIET, ())
    assert 0 < in_time.figures[PROCESSING_TIME] == in_time.figures[EVENT_TIME] < 3600, "the hour itself is long over"
    slow = judged(deployment, now, after_landing=timedelta(milliseconds=1))
    assert (slow.verdict, slow.partitions, slow.bound) == (JOB_LATE, ["2026-01-09T10 (batch 1)"], 0.001)
    assert slow.value == slow.figures[PROCESSING_TIME]
    assert not evaluation_of(slow).passed
    # Seen a day after the hour, its file is late, because it landed in another year.
    late = judged(deployment, datetime(2026, 1, 9, 14, tzinfo=timezone.utc), after_landing=60 * minute)
    assert (late.verdict, late.partitions) == (INPUT_LATE, ["2026-01-09T10 (batch 1)"])
    assert late.what.startswith("2026-01-09T10 (batch 1) was published ")
    assert "landing.visits came at " in late.what
    assert late.figures[EVENT_TIME] > 86400 > in_time.figures[PROCESSING_TIME] == late.figures[PROCESSING_TIME]
