"""Replays from the UI: a job plans and stores a replay, and a sensor carries it out, one run per replay."""

from typing import Any

import dagster as dg
from pydantic import Field

from blogdata.errors import PlatformError, refuse_unknown
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.operations.job import plan_table
from blogdata.orchestration import replays
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.refresh_request import JOB, Request
from blogdata.orchestration.replays import TAG, Replay
from blogdata.orchestration.retries import failure
from blogdata.orchestration.run_values import values_only
from blogdata.patterns.data_flow.concurrent_runner import AGAIN
from blogdata.planning.plan import ASKED, Planner
from blogdata.planning.snapshot import Snapshot
from quality.contracts import CONTRACTS, GRAPH
from sensors import run_requests
from sensors.run_requests import EVERYTHING


class ReplayConfig(dg.Config):
    """The partitions to run again, with everything downstream that has read them."""

    dataset: str = Field(description="Name as layer.table")
    partitions: str = Field(
        "",
        description="Keys, first..last, a day for its hours, several by commas, or all; empty for a table that is "
        "written whole",
    )
    only_plan: bool = Field(False, description="Only show the plan, and run nothing")


@dg.op(
    required_resource_keys={"lake"},
    config_schema=values_only(ReplayConfig),
    description="Plan a replay, and keep it for the sensor `replay_runs`",
)
def plan_replay(context: dg.OpExecutionContext) -> None:
    config = ReplayConfig(**context.op_config)
    access: LakeResource = context.resources.lake
    try:
        refuse_unknown([config.dataset], CONTRACTS, where="dataset")
        planner = Planner(graph=GRAPH, look=Snapshot(access.landing_zone, access.events))
        keys = planner.resolve_keys(config.dataset, config.partitions or None)
        planned = planner.plan_of_replay({config.dataset: dict.fromkeys(keys, ASKED)})
        if planned.refused and not planned.runs:
            raise planned.refused[0]
    except PlatformError as error:
        raise failure(context, error) from error
    if not config.only_plan:
        replays.request_replay(access.lake, access.events, config.dataset, planned.runs, context.run_id)
    metadata: dict[str, Any] = {"datasets": len(planned.runs), "plan": plan_table(planned.runs, planner.look)}
    if planned.refused:
        metadata["left out"] = "\n".join(str(error) for error in planned.refused)
        context.log.error(metadata["left out"])
    context.add_output_metadata(metadata)


@dg.job(
    name="replay",
    description="Run partitions again with everything that has read them: plan it, and have the sensor carry it out",
)
def replay_job() -> None:
    """Plan a replay."""
    plan_replay()


def replay_runs(status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED) -> dg.SensorDefinition:
    return dg.sensor(
        name="replay_runs",
        job_name=JOB,
        minimum_interval_seconds=15,
        default_status=status,
        description="Carries out the replays that the job `replay` has planned, one run a replay",
        tags=EVERYTHING,
    )(_tick)


def _tick(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    requests, lines = [], []
    for replay_ in replays.unfinished(lake.events):
        left = replay_.left(lake.events)
        if not left:
            replays.close(lake.events, replay_)
            lines.append(f"the replay of {replay_.dataset} is done")
            continue
        requests.append(
            run_requests.refresh_request(
                replay_.identity,
                Request(
                    again={run.datasets[0]: list(run.keys or (WHOLE_TABLE,)) for run in left},
                    only_again=True,
                    since=replay_.versions,
                ),
                about=f"replay of {replay_.dataset}",
                tags={**AGAIN, TAG: replay_.identity},
            )
        )
        if ended := _ended_badly(context.instance, replay_):
            lines.append(f"the replay of {replay_.dataset} waits: its run {ended}")
    for line in lines:
        context.log.info(line)
    # Dagster does not start a requested run again: it knows the key.
    return dg.SensorResult(
        run_requests=requests, skip_reason=None if requests else "; ".join(lines) or "no replay was asked for"
    )


def _ended_badly(instance: dg.DagsterInstance, replay_: Replay) -> str | None:
    for newest in instance.get_runs(dg.RunsFilter(tags={TAG: replay_.identity}), limit=1):
        if newest.status == dg.DagsterRunStatus.FAILURE:
            return f"{newest.run_id} failed; mend it and run that one again"
        if newest.status == dg.DagsterRunStatus.CANCELED:
            return f"{newest.run_id} was canceled; run that one again"
    return None
