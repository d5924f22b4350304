"""A table has one writer at a time, and what has just landed goes before backfills."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from definitions import build
from orchestration.pools import pool_of
from orchestration.refresh import JOB
from quality.contracts import CONTRACTS
from services import dagster_home
from services.config import Settings, load

NOWHERE = Path("/nowhere")


def deployed() -> dg.Definitions:
    return build(Settings(home=NOWHERE, landing=NOWHERE, lake=NOWHERE, jars=NOWHERE))


def test_a_pool_has_one_slot_per_run(tmp_path: Path) -> None:
    with dagster_home.open_instance(load({"BLOGDATA_HOME": str(tmp_path)})) as instance:
        pools = instance.get_concurrency_config().pool_config
        assert pools.default_pool_limit == 1
        assert pools.pool_granularity is not None
        assert pools.pool_granularity.value == "run"


def test_every_dataset_writes_in_its_tables_pool() -> None:
    pools = {
        ".".join(key.path): {op.pool for op in asset.node_def.iterate_op_defs()}
        for asset in deployed().assets or ()
        if isinstance(asset, dg.AssetsDefinition)
        for key in asset.keys
    }
    for dataset, contract in CONTRACTS.items():
        assert pools[dataset] == {pool_of(contract.main)}
    assert len({pool_of(dataset) for dataset in CONTRACTS}) == len(CONTRACTS)


def test_what_has_just_landed_goes_before_backfills() -> None:
    definitions = deployed()
    first = {name: definitions.resolve_job_def(name).tags.get("dagster/priority") for name in (JOB, "live", "freeze")}
    assert first == {JOB: "10", "live": "10", "freeze": None}
