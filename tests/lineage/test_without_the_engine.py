"""Where Spark may not load the engine's jar, audits use checkpoints of the rows; the rows are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from blogdata.patterns.observability import dataset_tracker
from blogdata.services import config, spark_connect
from blogdata.simulator.faults import FaultRates
from blogdata.simulator.spec import SimulationSpec
from lineage import expected
from lineage.deployment import Deployment

HOURS = ("2026-01-05T08", "2026-01-05T09", "2026-01-05T10")
FAULTS = FaultRates.none(duplicate=0.1, conflict=0.1, not_json=0.05, late=0.2)
STRAIGHT = ("bronze.visits", "silver.late_visits", "silver.visits", "silver.visits_enriched", "gold.page_stats")
RECOUNTED = ("bronze.visits", "silver.late_visits", "silver.visits", "silver.visit_conflicts", "gold.page_stats")


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment with its own Spark, which has nothing of the platform."""
    everything = Deployment.create(tmp_path / "simulated")
    everything.simulate(SimulationSpec(days=1, visits_per_day=1200, seed=5, faults=FAULTS))
    home = tmp_path / "home"
    home.mkdir()
    (home / "blogdata.toml").write_text('[spark]\nwrites = "checkpoint"\nheap = "700m"\n', encoding="utf-8")
    mine = Deployment(settings=config.load(overrides={"BLOGDATA_HOME": str(home)}))
    mine.copy_hours(everything, HOURS)
    yield mine
    mine.close()
    spark_connect.stop(mine.settings)


@pytest.mark.campaign
@pytest.mark.slow
def test_bronze_becomes_gold_without_the_engine(deployment: Deployment) -> None:
    outcome = deployment.run(select=STRAIGHT)
    assert outcome.problems == []
    assert deployment.problems() == []
    for dataset in RECOUNTED:
        for publication in dataset_tracker.publications(deployment.lake, dataset):
            assert publication.commit.info["column_lineage"] == {}, "only the engine records the plan of what it writes"
    rules = expected.of(deployment.landing)
    for dataset in RECOUNTED:
        assert Counter(deployment.rows(dataset, *rules[dataset].columns)) == rules[dataset].rows, dataset
    assert rules["silver.late_visits"].rows
