"""A replay from the UI is planned by a job and carried out by a sensor, in one run, whatever happens in between."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from orchestration import replays
from orchestration.replays import TAG
from published import bronze, devices, publish
from quality.contracts import CONTRACTS
from resources.lake import LakeResource
from sensors import replays as sensor
from sensors.replays import ReplayConfig, plan_replay

HOUR = "2026-01-05T03"
replay_runs = sensor.replay_runs()
DAILY = ("gold.visits_cube_daily", "gold.page_stats", "gold.referral_stats", "gold.sessions_daily", "gold.daily_report")
WEEKLY = ("gold.visits_cube_weekly", "gold.visits_weekly")
SILVER = ("silver.visits", "silver.visit_conflicts", "silver.visits_enriched")


@pytest.fixture
def lake(lake: LakeResource) -> LakeResource:
    """An hour that has been published from bronze to gold."""
    bronze(lake.lake, {HOUR: {HOUR: 5}})
    for dataset in SILVER:
        write(lake, dataset, HOUR)
    return lake


def write(lake: LakeResource, dataset: str, key: str) -> None:
    publish(lake.lake, dataset, CONTRACTS[dataset].partition_column, {key: 1}, inputs={"bronze.visits": 0})


def ask(lake: LakeResource, instance: dg.DagsterInstance, **config: Any) -> dg.OpExecutionContext:
    context = dg.build_op_context(resources={"lake": lake}, instance=instance)
    plan_replay(context, ReplayConfig(**config))
    return context


def asked(data: Any) -> dict[str, list[str]]:
    (request,) = data.run_requests
    config = request.run_config["resources"]["request"]["config"]
    assert config["only_again"]
    found: dict[str, list[str]] = config["again"]
    return found


def test_without_a_replay_nothing_is_asked_for(lake: LakeResource, tick: Any) -> None:
    assert tick(replay_runs).skip_message == "no replay was asked for"


def test_a_replay_asks_only_for_unfinished_parts(lake: LakeResource, instance: dg.DagsterInstance, tick: Any) -> None:
    ask(lake, instance, dataset="silver.visits", partitions=HOUR)
    first = tick(replay_runs)
    gold = {"gold.audience_hourly": [HOUR], **{dataset: ["2026-01-05"] for dataset in (*DAILY, *WEEKLY)}}
    hourly = ("silver.visits", "silver.visits_enriched", "silver.sessions")
    assert asked(first) == {**{dataset: [HOUR] for dataset in hourly}, "silver.places": [""], **gold}
    assert tick(replay_runs).run_requests[0].run_key == first.run_requests[0].run_key, "as long as it has not run"
    write(lake, "silver.visits", HOUR)
    assert "silver.visits" in asked(tick(replay_runs)), "as long as a part of it has not run"
    write(lake, "silver.visit_conflicts", HOUR)
    for dataset in (*hourly[1:], "silver.sessions_pending"):
        write(lake, dataset, HOUR)
    publish(lake.lake, "silver.places", None, {"": 1})
    assert asked(tick(replay_runs)) == gold
    for dataset, (key,) in gold.items():
        write(lake, dataset, key)
    assert tick(replay_runs).skip_message == "the replay of silver.visits is done"
    assert tick(replay_runs).skip_message == "no replay was asked for"


def test_whole_tables_are_replayed_without_partitions(
    lake: LakeResource, instance: dg.DagsterInstance, tick: Any
) -> None:
    devices(lake.lake, "2026-01-05")
    devices(lake.lake, "2026-01-06")
    ask(lake, instance, dataset="bronze.devices")
    assert asked(tick(replay_runs)) == {"bronze.devices": [""], "silver.devices": [""]}, "no visit is that new"


def test_publications_from_older_inputs_finish_no_replay(
    lake: LakeResource, instance: dg.DagsterInstance, tick: Any
) -> None:
    def names() -> int:
        return publish(lake.lake, "silver.devices", None, {"": 1})

    def enriched(read: int) -> None:
        publish(lake.lake, SILVER[2], "event_hour", {HOUR: 1}, inputs={"silver.devices": read})

    before = names()
    ask(lake, instance, dataset="silver.devices")
    # By the hourly path, from the devices as they were: no list is newer.
    enriched(before)
    assert list(asked(tick(replay_runs)))[:2] == ["silver.devices", SILVER[2]]
    replayed = names()
    assert next(iter(asked(tick(replay_runs)))) == SILVER[2]
    enriched(replayed)
    assert SILVER[2] not in asked(tick(replay_runs))
    names()
    assert SILVER[2] not in asked(tick(replay_runs)), "devices that came after the replay are none of its business"


def test_a_repeated_job_plans_the_same_replay(lake: LakeResource, instance: dg.DagsterInstance) -> None:
    context = ask(lake, instance, dataset="silver.visits", partitions=HOUR)
    plan_replay(context, ReplayConfig(dataset="silver.visits", partitions=HOUR))
    assert len(replays.unfinished(lake.events)) == 1


def test_planning_only_starts_no_replay(lake: LakeResource, instance: dg.DagsterInstance, tick: Any) -> None:
    context = ask(lake, instance, dataset="silver.visits", partitions="2026-01-05T03..2026-01-05T03", only_plan=True)
    metadata = context.get_output_metadata("result")
    assert metadata["datasets"] == 12
    assert metadata["plan"].records[0].data["partitions"] == HOUR
    assert tick(replay_runs).skip_message == "no replay was asked for"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"dataset": "silver.visit"}, "no dataset is called silver.visit"),
        ({"dataset": "silver.visits"}, "which partitions of silver.visits"),
        ({"dataset": "silver.visits", "partitions": "2025-01-05"}, "silver.visits has no partition 2025-01-05T00"),
        ({"dataset": "silver.devices", "partitions": "all"}, "silver.devices is written whole"),
    ],
)
def test_what_does_not_exist_is_refused(
    lake: LakeResource, instance: dg.DagsterInstance, config: dict[str, str], message: str
) -> None:
    with pytest.raises(dg.Failure, match=message):
        ask(lake, instance, **config)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (dg.DagsterRunStatus.FAILURE, "failed; mend it and run that one again"),
        (dg.DagsterRunStatus.CANCELED, "was canceled; run that one again"),
    ],
    ids=["failed", "canceled"],
)
def test_a_failed_run_holds_its_replay(
    lake: LakeResource,
    instance: dg.DagsterInstance,
    tick: Any,
    capsys: pytest.CaptureFixture[str],
    status: dg.DagsterRunStatus,
    told: str,
) -> None:
    ask(lake, instance, dataset="silver.visits", partitions=HOUR)
    (request,) = tick(replay_runs).run_requests
    tags = {TAG: request.tags[TAG], "dagster/run_key": request.run_key}
    run = instance.add_run(dg.DagsterRun(job_name="refresh", status=status, tags=tags))
    capsys.readouterr()
    again = tick(replay_runs)
    assert [one.run_key for one in again.run_requests] == [request.run_key], "Dagster knows the key, and starts nothing"
    assert f"the replay of silver.visits waits: its run {run.run_id} {told}" in capsys.readouterr().err
