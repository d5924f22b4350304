"""Replays from the UI: a job plans one and keeps it, a sensor carries it out, one run after the other."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets import plan
from orchestration import replays
from orchestration.dataset import ACCEPT, failure, key_of, range_tags
from orchestration.replay_planner import ASKED, Past, PlannedRun
from orchestration.replays import TAG, Replay, ReplayRun
from orchestration.step import FOLLOWED, LakeAccess
from patterns.core import names
from patterns.core.errors import PlatformError
from quality.contracts import CONTRACTS
from resources.lake import LakeResource


class ReplayConfig(dg.Config):
    """What runs again, with everything that has read it.

    Args:
        dataset: Name as `layer.table`.
        partitions: Keys, `first..last`, a day for its hours, several by commas, or `all`; empty for a table that is
            written whole.
        only_plan: Show the plan and run nothing.
    """

    dataset: str
    partitions: str = ""
    only_plan: bool = False


@dg.op(required_resource_keys={"lake"}, description="Plan a replay, and keep it for the sensor `replay_runs`")
def plan_replay(context: dg.OpExecutionContext, config: ReplayConfig) -> None:
    """Plan what a person asks for; nothing has run when it ends."""
    access: LakeAccess = context.resources.lake
    try:
        names.known([config.dataset], CONTRACTS, where="dataset")
        keys = plan.named(config.dataset, config.partitions or None, access.landing_path, access.events)
        planned = plan.replay({config.dataset: dict.fromkeys(keys, ASKED)}, access.events)
        if planned.refused and not planned.runs:
            raise planned.refused[0]
    except PlatformError as error:
        raise failure(context, error) from error
    if not config.only_plan:
        replays.ask(access.lake, access.events, config.dataset, planned.runs, context.run_id)
    told: dict[str, Any] = {"runs": len(planned.runs), "plan": _table(planned.runs, Past(access.events))}
    if planned.refused:
        told["left out"] = "\n".join(str(error) for error in planned.refused)
        context.log.error(told["left out"])
    context.add_output_metadata(told)


@dg.job(
    name="replay",
    description="Run partitions again with everything that has read them: plan it, and have the sensor carry it out",
)
def replay() -> None:
    """Plan a replay."""
    plan_replay()


@dg.sensor(
    name="replay_runs",
    asset_selection=dg.AssetSelection.groups("bronze", "silver", "gold"),
    minimum_interval_seconds=15,
    description="Carries out the replays that the job `replay` has planned, one run after the other",
)
def replay_runs(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    """Ask for the first run of each replay that is not done; close the replays of which nothing is left."""
    requests, told = [], []
    for asked in replays.pending(lake.events):
        left = asked.left(lake.events)
        if not left:
            replays.close(lake.events, asked)
            told.append(f"the replay of {asked.dataset} is done")
            continue
        number, run = left[0]
        requests.append(_request(asked, number, run))
        if ended := _ended_badly(context.instance, asked, number):
            told.append(f"the replay of {asked.dataset} waits: its run {ended}")
    for line in told:
        context.log.info(line)
    # A run that was asked for is not asked for again: its key is known.
    return dg.SensorResult(
        run_requests=requests, skip_reason=None if requests else "; ".join(told) or "no replay was asked for"
    )


def _request(asked: Replay, number: int, run: ReplayRun) -> dg.RunRequest:
    return dg.RunRequest(
        run_key=f"{asked.identity}/{number}",
        asset_selection=[key_of(dataset) for dataset in run.datasets],
        tags={TAG: asked.identity, ACCEPT: FOLLOWED, **range_tags(run.keys)},
    )


def _ended_badly(instance: dg.DagsterInstance, asked: Replay, number: int) -> str | None:
    tags = {TAG: asked.identity, "dagster/run_key": f"{asked.identity}/{number}"}
    for newest in instance.get_runs(dg.RunsFilter(tags=tags), limit=1):
        if newest.status == dg.DagsterRunStatus.FAILURE:
            return f"{newest.run_id} failed; mend it and run that one again"
        if newest.status == dg.DagsterRunStatus.CANCELED:
            return f"{newest.run_id} was canceled; run that one again"
    return None


def _table(runs: Sequence[PlannedRun], past: Past) -> dg.TableMetadataValue:
    records = []
    for run in runs:
        estimate = past.estimate(run)
        records.append(
            dg.TableRecord(
                {
                    "datasets": ", ".join(run.datasets),
                    "partitions": run.span,
                    "why": "; ".join(f"{reason} ({count})" for reason, count in run.reasons.items()),
                    "rows": estimate.rows or 0,
                    "seconds": round(estimate.seconds or 0.0, 1),
                }
            )
        )
    columns = [dg.TableColumn(name) for name in ("datasets", "partitions", "why")]
    columns += [dg.TableColumn("rows", type="int"), dg.TableColumn("seconds", type="float")]
    return dg.MetadataValue.table(records=records, schema=dg.TableSchema(columns=columns))
