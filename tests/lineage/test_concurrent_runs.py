"""Two concurrent runs over the same partitions publish one clean result, whichever is second."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

import dagster as dg
import pytest

import oracle
from blogdata.orchestration import turns
from blogdata.orchestration.names import asset_key
from blogdata.services import dagster_home
from blogdata.simulator.faults import FaultRates
from blogdata.simulator.spec import SimulationSpec
from definitions import build
from lineage import worker
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.phases import Hold
from lineage.runs import retries
from quality.contracts import CONTRACTS, GRAPH

DAY = "2026-01-05"
HOURS = ("2026-01-05T00", "2026-01-05T01")
# One dataset for each way to write, and their inputs.
NEEDED = ("silver.late_visits", "silver.sessions", "silver.users_current", "gold.visits_weekly")
SPEC = SimulationSpec(
    days=1, visits_per_day=800, seed=11, faults=FaultRates.none(duplicate=0.1, conflict=0.1, not_json=0.05, late=0.2)
)


@pytest.fixture(scope="module")
def world(deploy: Deploy) -> Deployment:
    """A simulated day that has not been run."""
    made = deploy("world")
    made.simulate(SPEC)
    return made


def materialize(deployment: Deployment, dataset: str) -> None:
    """Materialize a dataset's partitions of the day, as from the UI: without checking for other runs."""
    keys = sorted(deployment.published(dataset))
    definitions = build(deployment.settings)
    (asset,) = [
        each
        for each in definitions.assets or ()
        if isinstance(each, dg.AssetsDefinition) and asset_key(dataset) in each.keys
    ]
    span = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}
    with dagster_home.open_instance(deployment.settings) as instance:
        assert dg.materialize([asset], instance=instance, resources=definitions.resources, tags=span).success


def two_at_once(deployment: Deployment, folder: Path, day: str = "", needed: tuple[str, ...] = ()) -> list[str]:
    """Start the same run twice and wait for both; return their problems."""
    folders = [folder / "one", folder / "other"]
    for each in folders:
        each.mkdir()
    started = [worker.start(deployment, each, day=day, needed=needed) for each in folders]
    return [found for run in started for found in run.problems()]


@pytest.fixture(scope="module")
def deployment(world: Deployment, deploy: Deploy, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """Two hours published by two concurrent runs, into a lake that did not exist."""
    made = deploy("twice")
    made.copy_hours(world, HOURS)
    assert two_at_once(made, tmp_path_factory.mktemp("runs"), needed=NEEDED) == []
    return made


def test_two_first_runs_publish_every_row_once(deployment: Deployment) -> None:
    counted = oracle.count(deployment.landing)
    assert {key: entry.rows_out for key, entry in deployment.published("silver.visits").items()} == {
        key: events.unique for key, events in counted.event_hours.items()
    }
    assert len(deployment.rows("bronze.visits", "raw")) == sum(hour.lines for hour in counted.arrivals.values())
    assert deployment.problems() == []
    assert deployment.run(for_=NEEDED).runs == 0


def test_only_one_concurrent_run_computes_each_partition(deployment: Deployment) -> None:
    for dataset, contract in CONTRACTS.items():
        if contract.partitioning is not None:
            computed = defaultdict(list)
            for entry in deployment.events.history(dataset):
                computed[entry.partition].append((entry.version, entry.run_id, entry.inputs))
            assert {key: by for key, by in computed.items() if len(by) > 1} == {}, dataset


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("dataset", "phase"), [("bronze.visits", "opened"), ("silver.visits", "written"), ("gold.page_stats", "audited")]
)
def test_losing_run_retries_and_both_runs_succeed(
    deployment: Deployment, tmp_path: Path, dataset: str, phase: str
) -> None:
    if not deployment.published(dataset):
        assert deployment.run(for_=[dataset]).problems == []
    before, version = deployment.contents(), deployment.versions()[dataset]
    hold = Hold(tmp_path / "hold", dataset, phase).prepare()
    known = retries(deployment, dataset)
    slow = worker.start(deployment, tmp_path / "hold", dataset, phase, DAY)
    try:
        hold.reached(phase, lambda: slow.working)
        materialize(deployment, dataset)
    finally:
        hold.release()
    assert slow.problems() == []
    assert retries(deployment, dataset)[len(known) :] == ["ConcurrentWrite"]
    # The winner has computed everything requested: when the loser retries, nothing is left.
    assert deployment.versions()[dataset] - version == 1
    assert deployment.contents() == before
    assert deployment.problems() == []


@pytest.mark.campaign
def test_exhausted_retries_fail_and_keep_the_winners_rows(deployment: Deployment, tmp_path: Path) -> None:
    before, version = deployment.contents(), deployment.versions()["silver.visits"]
    hold = Hold(tmp_path / "hold", "silver.visits", "audited").prepare()
    slow = worker.start(deployment, tmp_path / "hold", "silver.visits", "audited", DAY, patient=False)
    try:
        hold.reached("audited", lambda: slow.working)
        materialize(deployment, "silver.visits")
    finally:
        hold.release()
    (problem,) = slow.problems()
    assert "another run published the same partitions" in problem
    assert "nothing of this run was published" in problem
    assert deployment.versions()["silver.visits"] == version + 1
    assert deployment.contents() == before
    assert deployment.problems() == []


@pytest.mark.campaign
def test_a_materialization_waits_for_a_table_in_order(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool holds back other materializations only; a run of `refresh` may already use this table."""
    dataset, looks = "silver.users_current", list[float]()
    task, log = GRAPH.task_of(dataset), dg.get_dagster_logger()
    with ExitStack() as other:
        other.enter_context(turns.claimed(deployment.lake, task, [DAY], log))

        def wait(seconds: float) -> None:
            looks.append(seconds)
            other.close()

        monkeypatch.setattr(turns, "wait", wait)
        materialize(deployment, dataset)
    assert len(looks) == 1
    assert turns.claims(deployment.lake, dataset).held() == {}


@pytest.mark.campaign
def test_an_hour_that_lands_is_in_gold_while_others_run_again(
    world: Deployment, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay holds a table's hours while it computes them; the other run leaves these stale hours to it."""
    lands, gold = "2026-01-05T02", "gold.audience_hourly"
    assert deployment.run(hours=(HOURS[0], HOURS[-1]), select=["bronze.visits"]).problems == []
    deployment.copy_hours(world, [lands])
    needed, before = [gold, *GRAPH.upstream([gold])], deployment.published("silver.visits")
    monkeypatch.setattr(turns, "wait", lambda _: pytest.fail("it waits for the replay"))
    with turns.claimed(deployment.lake, GRAPH.task_of("silver.visits"), HOURS, dg.get_dagster_logger()):
        assert deployment.run_requested(scope="ready", lane="landed", datasets=needed, retry_waiting=False).ok
    after = deployment.published("silver.visits")
    assert lands in deployment.published(gold)
    assert {hour: after[hour] for hour in HOURS} == {hour: before[hour] for hour in HOURS}
    assert deployment.run(for_=["silver.visits"]).problems == []
    newest = deployment.published("silver.visits")
    assert all(newest[hour].version > before[hour].version for hour in HOURS)
    assert deployment.problems() == []


@pytest.mark.campaign
def test_two_concurrent_full_runs_change_no_row(deployment: Deployment, tmp_path: Path) -> None:
    assert deployment.run().problems == []
    before = deployment.contents()
    assert two_at_once(deployment, tmp_path, DAY) == []
    assert deployment.contents() == before
    assert deployment.problems() == []
    assert deployment.run().problems == []
    assert deployment.contents() == before
