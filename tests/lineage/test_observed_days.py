"""Days of visitors that a run and a stream publish, as observers and detectors see them; who comes back in later weeks.

Visitors who come back are counted from the hours' sketches, and a late row computes its week again.

Patterns: Offline Observer, SLA Misses Detector.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import dagster as dg
import pytest

from assets.detector_checks import deployment_of, evaluation_of
from assets.streams import STREAMS
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.patterns.observability import dataset_tracker
from blogdata.patterns.observability.reading import QUIET, Reading
from blogdata.patterns.observability.sla_misses_detector import EVENT_TIME, INPUT_LATE, JOB_LATE, PROCESSING_TIME
from blogdata.planning import detectors
from blogdata.planning.observed import Observed
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.watch import StreamSla
from lineage import live
from lineage.command_line import Said
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from quality.contracts import EVERY, GRAPH
from quality.profiles import DRIFT, check_name, profiles
from resources.spark import SparkResource
from resources.zone import zone_of

COMPUTED, STREAMED = "silver.visits_enriched", "silver.visits_enriched_live"
CHECKS = {check_name(DRIFT, name) for name in (COMPUTED, STREAMED)}
ORDINARY, MOVED = ("Firefox", "Chrome", "Safari"), ("Opera", "Opera", "Safari")
MINUTES = 60
COUNTED, SKETCHED = "gold.returning_visitors", "gold.audience_hourly"
ARRIVES = "2026-01-09T10"
WEEKS = ("2025-12-15", "2025-12-22")
SHOWN = ("cohort_week", "event_week", "cohort_visitors", "week_visitors", "returning", "events")


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    """Two weeks of few visitors; later three ordinary days, then one of other visitors."""
    made = deploy("observed-days")
    come(made, f"{WEEKS[0]}T10", "ann", "bob", "eve")
    come(made, f"{WEEKS[1]}T10", "bob", "eve", "joe", "kim")
    come(made, f"{WEEKS[1]}T11", "bob")
    for day in ("2026-01-05", "2026-01-06", "2026-01-07"):
        land(made, day, ORDINARY)
    land(made, "2026-01-08", MOVED)
    publish(made)
    assert made.run(for_=[COUNTED]).problems == []
    return made


def come(made: Deployment, hour: str, *visitors: str, arrives: str = "", name: str = "visits.json") -> None:
    """Land an event of an hour for each visitor."""
    made.land(arrives or hour, [event("", f"/{who}", event_time=f"{hour}:05:00Z") for who in visitors], name=name)


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


@pytest.mark.campaign
def test_weeks_that_have_ended_are_paired_with_later_ones(deployment: Deployment) -> None:
    assert sorted(deployment.rows(COUNTED, *SHOWN)) == [
        (WEEKS[0], WEEKS[0], 3, 3, 3, 3),
        (WEEKS[0], WEEKS[1], 3, 4, 2, None),
        (WEEKS[1], WEEKS[1], 4, 4, 4, 5),
    ]
    assert deployment.problems() == []


@pytest.mark.campaign
def test_a_day_of_other_visitors_fails_its_check_until_newer_rows_come(deployment: Deployment, said: Said) -> None:
    code, out, _ = said("job", "profiles", "--json")
    found = {(one["dataset"], one["period"], one["column"]) for one in json.loads(out)["result"]["drifts"]}
    assert code == 0
    assert found == {(dataset, "2026-01-08", "browser") for dataset in (COMPUTED, STREAMED)}, (
        "the days before are ordinary"
    )
    failed = look(deployment)
    assert failed.keys() == CHECKS, "a look that finds nothing new does not hide it"
    assert {one.severity for one in failed.values()} == {dg.AssetCheckSeverity.WARN}
    assert all((one.description or "").startswith("2026-01-08: browser (") for one in failed.values())
    assert {each["column"] for each in json.loads(said("job", "profiles", "--json")[1])["result"]["drifts"]} == {
        "browser"
    }
    land(deployment, "2026-01-09", ORDINARY)
    # A late row besides, for the test of who comes back.
    come(deployment, f"{WEEKS[0]}T20", "kim", arrives=ARRIVES, name="late.json")
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


@pytest.mark.campaign
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


@pytest.mark.campaign
def test_a_late_row_makes_the_table_stale_until_its_week_is_computed(deployment: Deployment) -> None:
    """The page says how the view differs until then, and that the check `lag` and the plan show it."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "count-visitors.md"
    (query,) = [line for line in page.read_text(encoding="utf-8").splitlines() if "EXCEPT" in line]
    assert deployment.run(for_=[SKETCHED]).problems == []
    assert {row[:2] for row in deployment.pasted(query)} == {(WEEKS[0], week) for week in WEEKS}
    look = Snapshot(zone_of(deployment.settings), deployment.events)
    seen = Observed(graph=GRAPH, look=look, now=datetime.now(timezone.utc) + timedelta(hours=20))
    reading = detectors.lag(seen, GRAPH.contracts[COUNTED])
    assert reading.stands
    assert "1 versions of gold.audience_hourly are not read" in reading.what
    assert COUNTED in {name for one in deployment.outstanding().runs for name in one.datasets}
    assert deployment.run(for_=[COUNTED]).problems == []
    newest = next(dataset_tracker.publications(deployment.lake, COUNTED)).commit
    # The other changed hour is of the week that has not ended.
    assert newest.info["refreshed"].startswith(f"{WEEKS[0]}, since 2 partitions of gold.audience_hourly changed")
    counted = {row[:2]: row[2:] for row in deployment.rows(COUNTED, *SHOWN)}
    assert counted[WEEKS[0], WEEKS[1]] == (4, 4, 3, None)
    assert deployment.pasted(query) == []
    assert deployment.problems() == []
