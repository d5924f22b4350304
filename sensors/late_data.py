"""Dynamic Late Data Integrator: exactly the event hours that late rows touched run again, each once."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from assets.plan import STALE, late, stage_of
from assets.staleness import outdated, stale_late_hours
from orchestration import replay_planner
from orchestration.dataset import key_of
from orchestration.replay_planner import Wanted
from resources.lake import LakeResource
from sensors import jobs, under_way
from sensors.landing import MOST_AT_ONCE


@dg.sensor(
    job=jobs.event_hour,
    minimum_interval_seconds=30,
    description="Runs the event hours again that late rows, or late users, touched; days and weeks above them follow",
    tags={"pattern/dynamic-late-data-integrator": ""},
)
def late_data(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    """Compare, per event hour, what bronze and the users have with what silver has read; all is in the event log."""
    return _requests(context, lake, late(lake.events), of="silver.visits", after=("bronze.visits", "silver.users"))


@dg.sensor(
    job=jobs.late_rows,
    minimum_interval_seconds=30,
    description="Captures the late rows of an hour of arrival again when an earlier hour has moved its watermark",
    tags={"pattern/late-data-detector": ""},
)
def watermark_moved(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    """Compare the watermark each hour was judged by with the one it has now."""
    wanted = {"silver.late_visits": dict.fromkeys(stale_late_hours(lake.events), STALE)}
    return _requests(context, lake, wanted, of="silver.late_visits", after=("bronze.visits",))


def _requests(
    context: dg.SensorEvaluationContext, lake: LakeResource, wanted: Wanted, *, of: str, after: Sequence[str]
) -> dg.SensorResult | dg.SkipReason:
    planned = {hour: run.datasets for run in replay_planner.cut(stage_of(of), wanted) for hour in run.keys}
    if not planned:
        return dg.SkipReason("every hour has seen all of its rows")
    # The hour that is just arriving is on its way through silver in the run that brought it.
    busy = under_way.hours(context.instance, of) | under_way.claims(lake.lake, of).held().keys()
    waiting = sorted(planned.keys() - busy)
    if not waiting:
        return dg.SkipReason(f"all {len(planned)} hours that have not seen all of their rows are under way")
    # An hour is asked for once per state of its inputs: a run that failed is a person's, not this sensor's.
    state = ".".join(str(version) for version in lake.lake.versions(after).values())
    by = outdated(lake.events.publications(of))
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                run_key=f"{hour}@{state}.{by[hour]}" if hour in by else f"{hour}@{state}",
                partition_key=hour,
                asset_selection=[key_of(dataset) for dataset in planned[hour]],
            )
            for hour in waiting[:MOST_AT_ONCE]
        ]
    )
