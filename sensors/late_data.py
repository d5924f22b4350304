"""Dynamic Late Data Integrator: exactly the event hours that late rows touched run again, each once."""

from __future__ import annotations

import dagster as dg

from assets.plan import stale_event_hours
from resources.lake import LakeResource
from sensors import jobs
from sensors.landing import MOST_AT_ONCE


@dg.sensor(
    job=jobs.event_hour,
    minimum_interval_seconds=30,
    description="Runs the event hours again that late data touched; the days and weeks above them follow",
    tags={"pattern/dynamic-late-data-integrator": ""},
)
def late_data(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    """Compare, per event hour, what bronze has with what silver has read; both are in the event log."""
    version = lake.lake.version("bronze.visits")
    if version is None:
        return dg.SkipReason("nothing has been published yet")
    running = _running(context.instance)
    behind = [hour for hour in stale_event_hours(lake.events) if hour not in running]
    if not behind:
        return dg.SkipReason("every event hour has seen all of its rows")
    # An hour is asked for once per version of bronze: a run that is under way is not started twice.
    requests = [
        dg.RunRequest(run_key=f"{hour}@{version}", partition_key=hour) for hour in behind[:MOST_AT_ONCE]
    ]
    return dg.SensorResult(run_requests=requests)


def _running(instance: dg.DagsterInstance) -> set[str]:
    # The hour that is just arriving is on its way through silver in the run that brought it.
    statuses = [
        dg.DagsterRunStatus.QUEUED,
        dg.DagsterRunStatus.NOT_STARTED,
        dg.DagsterRunStatus.STARTING,
        dg.DagsterRunStatus.STARTED,
    ]
    under_way = [
        run
        for job in (jobs.hour_of_arrival, jobs.event_hour)
        for run in instance.get_runs(dg.RunsFilter(job_name=job.name, statuses=statuses))
    ]
    return {run.tags["dagster/partition"] for run in under_way if "dagster/partition" in run.tags}
