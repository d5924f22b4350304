"""The Spark server killed with -9 under a run: a transient fault, and the run ends well on a new server."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import oracle
from kills import kill
from lineage.deployment import Deployment
from lineage.phases import PHASES, RECORDED, Hold
from lineage.runs import Background, retries
from quality.contracts import CONTRACTS
from resources.spark import SparkResource
from services import spark_connect
from services.config import Settings
from simulator.faults import FaultRates
from simulator.spec import SimulationSpec

DAY = "2026-01-05"
HOURS = ("2026-01-05T00", "2026-01-05T01")
SPEC = SimulationSpec(
    days=1, visits_per_day=800, seed=11, faults=FaultRates.none(duplicate=0.1, conflict=0.1, not_json=0.05, late=0.2)
)
SEED = int(os.environ.get("KILL_SEED", "1"))
"""What the first run is doing when its server dies; `KILL_SEED=7 pytest ...` tries something else."""
KILLS = dict(
    zip(
        PHASES,
        ("silver.visits", "bronze.visits", "gold.page_stats", "silver.visits_enriched", "silver.users"),
        strict=True,
    )
)
"""Phase to the dataset whose publication is in it when the server dies."""
SHORT = ("written", "committed")
"""Before and after the commit: what every run of the suite tries. Each takes a new server; the rest is a campaign."""
CAMPAIGN = "KILL_CAMPAIGN" in os.environ


@pytest.fixture(scope="module")
def alone(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment that has a Spark server to itself, and two hours that nobody has run."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("SPARK_REMOTE", "BLOGDATA_SPARK_MODE", "BLOGDATA_LANDING", "BLOGDATA_LAKE"):
            patch.delenv(variable, raising=False)
        patch.setenv("BLOGDATA_SPARK_HEAP", "1g")
        patch.setenv("BLOGDATA_SPARK_START_SECONDS", "240")
        patch.setenv("BLOGDATA_JARS", str(settings.jars))
        folder = tmp_path_factory.mktemp("alone")
        world = Deployment.create(folder / "world")
        world.simulate(SPEC)
        made = Deployment.create(folder / "alone")
        made.copy_hours(world, HOURS)
        yield made
        made.close()
        spark_connect.stop(made.settings)


@pytest.fixture(scope="module")
def survived(alone: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """The two hours, published by a run whose server was killed somewhere in its middle."""
    draw = random.Random(SEED)
    dataset, phase = draw.choice(sorted(CONTRACTS)), draw.choice(PHASES[:4])
    print(f"seed {SEED}: the server is killed when {dataset} is {phase}")  # noqa: T201 - to be repeated
    with pytest.MonkeyPatch.context() as patch:
        hold = Hold(tmp_path_factory.mktemp("first") / "hold", dataset, phase).prepare().install(patch)
        with Background(alone) as run:
            hold.reached(phase, lambda: run.working)
            kill_the_server(alone)
            hold.release()
            assert run.outcome().problems == []
    assert retries(alone, dataset) == ["SparkServerLost"]
    return alone


def kill_the_server(deployment: Deployment) -> None:
    """Kill the server of a deployment, and see it gone."""
    kill(spark_connect.ensure(SparkResource(home=str(deployment.settings.home)).settings).process)


def test_a_first_run_whose_server_dies_in_its_middle_loses_and_doubles_nothing(survived: Deployment) -> None:
    counted = oracle.count(survived.landing)
    assert {key: entry.rows_out for key, entry in survived.published("silver.visits").items()} == {
        key: events.unique for key, events in counted.event_hours.items()
    }
    assert len(survived.rows("bronze.visits", "raw")) == sum(hour.lines for hour in counted.arrivals.values())
    assert survived.problems() == []
    before = survived.contents()
    assert survived.run().runs == 0
    assert survived.run(hours=(DAY, DAY)).problems == []
    assert survived.contents() == before


@pytest.mark.parametrize(("phase", "dataset"), [pair for pair in KILLS.items() if CAMPAIGN or pair[0] in SHORT])
def test_a_server_killed_while_a_step_publishes_is_replaced_and_the_step_publishes_once(
    survived: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str, dataset: str
) -> None:
    before, version = survived.contents(), survived.versions()[dataset]
    known = retries(survived, dataset)
    hold = Hold(tmp_path / "hold", dataset, phase).prepare().install(monkeypatch)
    with Background(survived, (dataset,), DAY) as run:
        hold.reached(phase, lambda: run.working)
        kill_the_server(survived)
        assert survived.versions()[dataset] == version + (phase in ("committed", RECORDED))
        assert survived.contents() == before
        hold.release()
        assert run.outcome().problems == []
    # What is left to do after the commit needs no Spark.
    assert retries(survived, dataset)[len(known) :] == ([] if phase == RECORDED else ["SparkServerLost"])
    assert survived.versions()[dataset] == version + 1
    assert survived.contents() == before
    assert survived.problems() == []
