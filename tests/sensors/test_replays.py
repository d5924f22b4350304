"""A replay from the UI is planned by a job and started by a sensor as one run, whatever happens in between."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from blogdata.lake.commit import WHOLE_TABLE
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.replays import TAG
from blogdata.publish.partitions import Grain
from declared import by_grain, computed_from
from published import bronze, publish
from quality.contracts import CONTRACTS
from sensors import replays as sensor
from sensors.replays import plan_replay

HOUR = "2026-01-05T03"
replay_runs = sensor.replay_runs()
MAINS = {CONTRACTS[name].main for name in computed_from("silver.visits") | {"silver.visits"}}
"""What a replay of an hour of silver.visits asks for: what appears with a dataset is asked for by its name."""
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
    context = dg.build_op_context(resources={"lake": lake}, instance=instance, op_config=config)
    plan_replay(context)
    return context


def asked(data: Any) -> dict[str, list[str]]:
    (request,) = data.run_requests
    config = request.run_config["resources"]["request"]["config"]
    assert config["only_again"]
    found: dict[str, list[str]] = config["again"]
    return found


def test_a_replay_asks_only_for_unfinished_parts(lake: LakeResource, instance: dg.DagsterInstance, tick: Any) -> None:
    ask(lake, instance, dataset="silver.visits", partitions=HOUR)
    first = tick(replay_runs)
    keys = {Grain.HOUR: [HOUR], Grain.DAY: ["2026-01-05"], Grain.WEEK: ["2026-01-05"], None: [WHOLE_TABLE]}
    assert asked(first) == by_grain(MAINS, keys)
    assert tick(replay_runs).run_requests[0].run_key == first.run_requests[0].run_key, "until it has run"
    write(lake, "silver.visits", HOUR)
    assert "silver.visits" in asked(tick(replay_runs)), "until all parts have run"
    write(lake, "silver.visit_conflicts", HOUR)
    gold = {name for name in MAINS if CONTRACTS[name].layer == "gold"}
    for dataset, (key,) in by_grain(computed_from("silver.visits") - gold - {"silver.visit_conflicts"}, keys).items():
        write(lake, dataset, key)
    assert asked(tick(replay_runs)) == by_grain(gold, keys)
    for dataset, (key,) in by_grain(gold, keys).items():
        write(lake, dataset, key)
    assert tick(replay_runs).skip_message == "the replay of silver.visits is done"
    assert tick(replay_runs).skip_message == "no replay was asked for"


def test_publications_from_older_inputs_finish_no_replay(
    lake: LakeResource, instance: dg.DagsterInstance, tick: Any
) -> None:
    def names() -> int:
        return publish(lake.lake, "silver.devices", None, {"": 1})

    def enriched(read: int) -> None:
        publish(lake.lake, SILVER[2], "event_hour", {HOUR: 1}, inputs={"silver.devices": read})

    before = names()
    ask(lake, instance, dataset="silver.devices")
    # Requested as new data, computed from the old devices: no list is newer.
    enriched(before)
    assert list(asked(tick(replay_runs)))[:2] == ["silver.devices", SILVER[2]]
    replayed = names()
    assert next(iter(asked(tick(replay_runs)))) == SILVER[2]
    enriched(replayed)
    assert SILVER[2] not in asked(tick(replay_runs))
    names()
    assert SILVER[2] not in asked(tick(replay_runs)), "devices delivered after the replay do not concern it"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"dataset": "silver.visit"}, "no dataset is called silver.visit"),
        ({"dataset": "silver.visits"}, "which partitions of silver.visits"),
        ({"dataset": "silver.visits", "partitions": "2025-01-05"}, "silver.visits has no partition 2025-01-05T00"),
        ({"dataset": "silver.devices", "partitions": "all"}, "silver.devices is written whole"),
    ],
)
def test_replays_of_unknown_data_are_refused(
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
