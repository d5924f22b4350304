"""Reports killed runs as failed."""

from __future__ import annotations

import dagster as dg

from blogdata.orchestration import dead_runs


@dg.sensor(
    name="dead_runs",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Reports runs as failed whose process was killed: their partitions and pools are free again",
)
def end_dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    dead = dead_runs.settle(context.instance, launched=True)
    for run in dead:
        context.log.warning(f"run {run} has failed: its process is no more")
    return dg.SkipReason(f"{len(dead)} runs were dead" if dead else "no run is dead")
