"""Dynamic Late Data Integrator: exactly the event hours that late rows touched run again, each once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import dagster as dg

from assets.plan import STALE, late, stage_of
from assets.staleness import event_hour_inputs, stale_late_hours
from orchestration import replay_planner
from orchestration.dataset import key_of
from orchestration.replay_planner import Wanted
from patterns.core.events import EventLog
from resources.lake import LakeResource
from sensors import asking, jobs, under_way


@dg.sensor(
    job=jobs.event_hour,
    minimum_interval_seconds=30,
    description="Runs the event hours again that late rows, or late users, touched; days and weeks above them follow",
    tags={"pattern/dynamic-late-data-integrator": ""},
)
def late_data(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    """Compare, per event hour, what bronze and the users have with what silver has read; all is in the event log."""
    return _ask(context, lake, late(lake.events), of="silver.visits", reads=event_hour_inputs)


@dg.sensor(
    job=jobs.late_rows,
    minimum_interval_seconds=30,
    description="Captures the late rows of an hour of arrival again when an earlier hour has moved its watermark",
    tags={"pattern/late-data-detector": ""},
)
def watermark_moved(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    """Compare the watermark each hour was judged by with the one it has now."""
    wanted = {"silver.late_visits": dict.fromkeys(stale_late_hours(lake.events), STALE)}
    return _ask(context, lake, wanted, of="silver.late_visits", reads=stale_late_hours)


def _ask(
    context: dg.SensorEvaluationContext,
    lake: LakeResource,
    wanted: Wanted,
    *,
    of: str,
    reads: Callable[[EventLog], Mapping[str, str]],
) -> dg.SensorResult | dg.SkipReason:
    planned = {hour: run.datasets for run in replay_planner.cut(stage_of(of), wanted) for hour in run.keys}
    if not planned:
        return dg.SkipReason("every hour has seen all of its rows")
    # The hour that is just arriving is on its way through silver in the run that brought it.
    busy = under_way.hours(context.instance, of) | under_way.claims(lake.lake, of).held().keys()
    waiting = sorted(planned.keys() - busy)
    if not waiting:
        return dg.SkipReason(f"all {len(planned)} hours that have not seen all of their rows are under way")
    state = reads(lake.events)
    requests = [
        dg.RunRequest(
            run_key=f"{of} {hour}, {state.get(hour)}",
            partition_key=hour,
            asset_selection=[key_of(dataset) for dataset in planned[hour]],
        )
        for hour in waiting
    ]
    return asking.ask(context.instance, requests, quiet="")
