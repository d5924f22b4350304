"""Pools hold as many writers as they are given, and what has just arrived goes first."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from assets import bronze, gold, silver
from orchestration import concurrent_runner
from quality.contracts import CONTRACTS
from sensors import jobs
from services import dagster_home
from services.config import load


def instance(home: Path) -> dg.DagsterInstance:
    return dagster_home.opened(load({"BLOGDATA_HOME": str(home)}))


def test_a_pool_holds_as_many_writers_as_it_is_given(tmp_path: Path) -> None:
    with instance(tmp_path) as deployed:
        concurrent_runner.limit(deployed, {"silver.visits": 2})
        storage, pool = deployed.event_log_storage, concurrent_runner.pool_of("silver.visits")
        claims = [storage.claim_concurrency_slot(pool, f"run-{run}", "step").is_claimed for run in range(3)]
        assert claims == [True, True, False]
        storage.free_concurrency_slots_for_run("run-0")
        assert storage.claim_concurrency_slot(pool, "run-2", "step").is_claimed


def test_a_table_nobody_set_a_limit_for_has_one_writer(tmp_path: Path) -> None:
    with instance(tmp_path) as deployed:
        pools = deployed.get_concurrency_config().pool_config
        assert pools.default_pool_limit == 1
        assert pools.pool_granularity is not None
        assert pools.pool_granularity.value == "run"


def test_every_dataset_writes_in_the_pool_of_its_table() -> None:
    pools = {
        ".".join(key.path): {op.pool for op in asset.node_def.iterate_op_defs()}
        for asset in (*bronze.ASSETS, *silver.ASSETS, *gold.ASSETS)
        for key in asset.keys
    }
    for dataset, contract in CONTRACTS.items():
        # What appears with another dataset is written by nobody else.
        assert pools[dataset] == {concurrent_runner.pool_of(contract.appears_with or dataset)}
    assert len({concurrent_runner.pool_of(dataset) for dataset in CONTRACTS}) == len(CONTRACTS)


def test_arriving_data_goes_before_late_data_and_late_data_before_backfills() -> None:
    arriving, late = (int(job.tags[concurrent_runner.PRIORITY_TAG]) for job in (jobs.hour_of_arrival, jobs.event_hour))
    assert arriving > late > 0
    assert concurrent_runner.PRIORITY_TAG not in (jobs.daily.tags or {})
