"""The process of a run killed with -9 at any phase of a publication: run again, and nothing is lost or doubled."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from lineage import worker
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.phases import PHASES, Hold
from lineage.runs import under_way
from quality.contracts import CONTRACTS
from simulator.faults import FaultRates
from simulator.spec import SimulationSpec

DAY = "2026-01-05"
HOURS = ("2026-01-05T00", "2026-01-05T01")
SPEC = SimulationSpec(
    days=1, visits_per_day=800, seed=11, faults=FaultRates.none(duplicate=0.1, conflict=0.1, not_json=0.05, late=0.2)
)
SEEDS = [int(seed) for seed in os.environ.get("KILL_SEEDS", "1").split(",")]
"""What dies when during the first run of a lake; `KILL_SEEDS=2,3,5 pytest tests/lineage/test_kills.py` tries others."""


@pytest.fixture(scope="module")
def world(deploy: Deploy) -> Deployment:
    """A simulated day that nobody runs."""
    made = deploy("world")
    made.simulate(SPEC)
    return made


@pytest.fixture(scope="module")
def published(world: Deployment, deploy: Deploy) -> Deployment:
    """Two hours of it, published by a run that nobody disturbed."""
    made = deploy("published")
    made.copy_hours(world, HOURS)
    assert made.run().problems == []
    return made


@pytest.fixture
def hold_folder(tmp_path: Path) -> Iterator[Path]:
    """Where a held write looks; whatever a test left held goes on at its end."""
    yield tmp_path / "hold"
    for left in (tmp_path / "hold").glob("*.hold"):
        left.unlink()


def killed(deployment: Deployment, hold: Hold, folder: Path, dataset: str, phase: str, span: str = "") -> None:
    """Kill a run when it is at a phase of the publication of a dataset."""
    process = worker.start(deployment, folder, dataset, phase, span)
    try:
        hold.reached(phase, lambda: process.poll() is None)
    finally:
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, (folder / "worker.log").read_text()


@pytest.mark.parametrize(
    ("phase", "dataset"),
    zip(
        PHASES,
        ("bronze.visits", "silver.users", "silver.visits_enriched", "silver.visits", "gold.page_stats"),
        strict=True,
    ),
)
def test_a_run_killed_while_it_publishes_leaves_the_table_whole_and_the_next_run_mends_the_rest(
    published: Deployment, hold_folder: Path, phase: str, dataset: str
) -> None:
    before, version = published.contents(), published.versions()[dataset]
    hold = Hold(hold_folder, dataset, phase).prepare()
    killed(published, hold, hold_folder, dataset, phase, DAY)
    committed = phase in ("committed", "recorded")
    assert published.versions()[dataset] == version + committed
    assert published.contents() == before
    # What the run committed is on the books, though the process died before it could write it there.
    assert published.problems() == []
    assert len(under_way(published)) == 1
    hold.release()
    assert published.run(select=[dataset], hours=(DAY, DAY)).problems == []
    assert published.contents() == before
    assert published.problems() == []
    # A run that Dagster takes to be under way would hold its pools, and sensors would wait for it.
    assert under_way(published) == []


def test_the_write_of_a_killed_run_that_goes_on_in_the_server_does_not_replace_what_came_after_it(
    published: Deployment, hold_folder: Path
) -> None:
    before, version = published.contents(), published.versions()["silver.visits"]
    hold = Hold(hold_folder, "silver.visits", "audited").prepare()
    killed(published, hold, hold_folder, "silver.visits", "audited", DAY)
    assert published.run(select=["silver.visits"], hours=(DAY, DAY)).problems == []
    (again,) = {entry.run_id for entry in published.published("silver.visits").values() if entry.version > version}
    hold.release()
    assert published.run(select=["silver.visits_enriched"], hours=(DAY, DAY)).problems == []
    assert {entry.run_id for entry in published.published("silver.visits").values() if entry.version > version} == {
        again
    }
    assert not (hold_folder / "committed.reached").exists()
    assert published.contents() == before
    assert published.problems() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_first_run_killed_anywhere_is_completed_by_the_next_one(
    world: Deployment, published: Deployment, deploy: Deploy, hold_folder: Path, seed: int
) -> None:
    draw = random.Random(seed)
    dataset, phase = draw.choice(sorted(CONTRACTS)), draw.choice(PHASES)
    print(f"seed {seed}: killed when {dataset} is {phase}")  # noqa: T201 - to be repeated
    first = deploy(f"killed-{seed}")
    first.copy_hours(world, HOURS)
    hold = Hold(hold_folder, dataset, phase).prepare()
    killed(first, hold, hold_folder, dataset, phase)
    hold.release()
    assert first.run().problems == []
    assert first.contents() == published.contents()
    assert first.problems() == []
    assert first.run().runs == 0
