"""Concurrent runs over the same partitions publish one clean result; so do runs that are killed, with the next one."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

import oracle
from blogdata.operate import dagster_home
from blogdata.runs.killed_runs import UNDER_WAY
from blogdata.simulator.spec import FaultRates, SimulationSpec
from laws.stepping import Probe
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.worker import RECORDED, Worker
from quality.contracts import CONTRACTS

HOURS = ("2026-01-05T00", "2026-01-05T01")
KILLED_AT = {
    "silver.sessions": "written",
    "silver.late_visits": "audited",
    "silver.users_current": "committed",
    "bronze.devices": RECORDED,
}
"""Datasets that are replaced with a companion, by partition, executed in order, and copied behind a pointer."""
SPEC = SimulationSpec(
    days=1, visits_per_day=800, seed=11, faults=FaultRates.none(duplicate=0.1, conflict=0.1, not_json=0.05, late=0.2)
)


@pytest.fixture(scope="module")
def world(deploy: Deploy) -> Deployment:
    made = deploy("world")
    made.simulate(SPEC)
    return made


@pytest.fixture(scope="module", params=[1, pytest.param(len(KILLED_AT), marks=pytest.mark.campaign)])
def needed(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return tuple(KILLED_AT)[: request.param]


@pytest.fixture(scope="module")
def deployment(
    world: Deployment, needed: tuple[str, ...], deploy: Deploy, tmp_path_factory: pytest.TempPathFactory
) -> Deployment:
    """Two hours published by two concurrent runs, into a lake that did not exist."""
    made = deploy(f"twice-{len(needed)}")
    made.copy_hours(world, HOURS)
    folder = tmp_path_factory.mktemp("runs")
    started = [Worker(made, Probe(folder / name), needed) for name in ("one", "other")]
    assert [problem for run in started for problem in run.problems()] == []
    return made


def test_two_first_runs_publish_every_row_once(deployment: Deployment, needed: tuple[str, ...]) -> None:
    counted = oracle.count(deployment.landing)
    assert {key: entry.rows_out for key, entry in deployment.published("silver.visits").items()} == {
        key: events.unique for key, events in counted.event_hours.items()
    }
    assert len(deployment.rows("bronze.visits", "raw")) == sum(hour.lines for hour in counted.arrivals.values())
    assert deployment.problems() == []
    assert deployment.run(for_=needed).runs == 0


def test_only_one_concurrent_run_computes_each_partition(deployment: Deployment) -> None:
    for dataset, contract in CONTRACTS.items():
        if contract.partitioning is not None:
            computed = defaultdict(list)
            for entry in deployment.events.history(dataset):
                computed[entry.partition].append((entry.version, entry.run_id, entry.inputs))
            assert {key: by for key, by in computed.items() if len(by) > 1} == {}, dataset


def test_runs_killed_at_each_way_to_write_are_completed_by_the_next(
    world: Deployment, deployment: Deployment, needed: tuple[str, ...], deploy: Deploy, tmp_path: Path
) -> None:
    """Killed with -9 before and after the commit; what the server still writes ends, or goes on beside the next run."""
    made = deploy(f"killed-{len(needed)}")
    made.copy_hours(world, HOURS)
    for dataset in needed:
        phase = KILLED_AT[dataset]
        probe = Probe(tmp_path / dataset)
        probe.hold(phase)
        run = Worker(made, probe, (dataset,), dataset)
        assert probe.reached(phase, run.is_working), run.problems()
        run.kill()
        probe.end("audited")
        probe.release()
    assert made.run(for_=needed).problems == []
    assert (made.problems(), made.run(for_=needed).runs) == ([], 0)
    assert made.contents() == deployment.contents()
    with dagster_home.open_instance(made.settings) as instance:
        assert [record for record in instance.get_run_records() if record.dagster_run.status in UNDER_WAY] == []
