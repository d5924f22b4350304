"""The platform's side of (b): three datasets in a chain, each with its contract, run as `blogdata run` runs them.

Run as a process: `python -m benchmarks.chain_platform HOME RUNS` runs the chain RUNS times and prints, as JSON, the end
of the first run and the seconds of each.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import dagster as dg
from pyspark.sql import functions as F

from benchmarks.deployment import RunFailed
from blogdata.lake.commit import Account, Commit
from blogdata.lake.lake import Lake
from blogdata.orchestration import accounts, dead_runs
from blogdata.orchestration.calendar import calendar
from blogdata.orchestration.computation import LineageCode, computes
from blogdata.orchestration.dataset import AssetBuilder
from blogdata.orchestration.names import asset_key
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.planning.graph import Graph
from blogdata.planning.reach import Same
from blogdata.publish.contract import Contract, Read
from blogdata.publish.partitions import Grain
from blogdata.publish.run import RunContext
from blogdata.publish.schema import Column, Partitioning, RowRule
from blogdata.publish.target import Provenance, Target
from blogdata.services import config, dagster_home
from blogdata.services.config import Settings
from blogdata.services.dagster_internals import InMemoryJob, execute_run_iterator
from resources import connections

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAY = "2026-01-05"
ROWS = 1_000
STEPS = ("first", "second", "third")
SOURCE = Contract(
    dataset="bench.source",
    description="Numbers",
    owner="team:platform",
    columns=(
        Column(name="day", type="STRING", nullable=False, description="Day"),
        Column(name="id", type="BIGINT", nullable=False, description="Identifier"),
        Column(name="value", type="BIGINT", nullable=False, description="Value"),
    ),
    key=("id",),
    partitioning=Partitioning(column="day", grain=Grain.DAY),
    rules=(RowRule(name="not_negative", expression="value >= 0", description="Values are not negative"),),
    statistics=("id",),
)


def source(spark: SparkSession) -> DataFrame:
    """Make up the single partition with which the chain begins."""
    return spark.range(ROWS).select(F.lit(DAY).alias("day"), "id", (F.col("id") * 3).alias("value"))


def prepare(spark: SparkSession, settings: Settings) -> None:
    """Publish the chain's input."""
    run = RunContext(run_id="source", job="benchmark", code_version="benchmark")
    target = Target(lake=Lake(root=str(settings.lake)), contract=SOURCE, run=run)
    overwrite_partitions(source(spark), target, [DAY], Provenance(accounts={DAY: Account(rows_in=ROWS)}))


def definitions(settings: Settings) -> dg.Definitions:
    """Declare the three datasets, each its input plus one column."""
    contracts, declared = {SOURCE.dataset: SOURCE}, {}
    contract = SOURCE
    for name in STEPS:
        column = Column(name=name, type="BIGINT", nullable=False, description="The value and one more")
        above = contract
        contract = replace(
            above,
            dataset=f"bench.{name}",
            columns=(*above.columns, column),
            reads=(Read(dataset=above.dataset, reach=Same()),),
        )
        contracts[contract.dataset] = contract
        declared[contract.dataset] = computes(contract.dataset)(_adding(name, above.dataset))
    code = LineageCode(computations=declared, graph=Graph(contracts=contracts), version="benchmark")
    return dg.Definitions(
        assets=AssetBuilder(code=code, calendar=calendar(DAY, DAY)).assets(),
        resources=connections(settings),
        executor=dead_runs.in_process(),
    )


def _adding(name: str, above: str) -> Callable[[Step], Mapping[str, Commit]]:
    def compute(step: Step) -> Mapping[str, Commit]:
        rows = step.read(above).where(F.col("day").isin(*step.partitions))
        added = rows.withColumn(name, F.col("value") + 1)
        return step.publish(added, Upstream(accounts=accounts.same_partition(step, above)))

    return compute


def run(settings: Settings, repository: dg.RepositoryDefinition) -> None:
    """Run the chain once, in this process, as a normal run: recorded by Dagster, with checks and the ledger.

    Raises:
        RunFailed: A step failed.
    """
    keys = [asset_key(f"bench.{name}") for name in STEPS]
    with dagster_home.open_instance(settings) as instance:
        dead_runs.settle(instance)
        job = repository.get_implicit_job_def_for_assets(keys)
        assert job is not None
        subset = job.get_subset(asset_selection=frozenset(keys))
        created = instance.create_run_for_job(
            job_def=subset,
            tags={"dagster/partition": DAY},
            asset_selection=frozenset(keys),
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
        failed = [event for event in execute_run_iterator(InMemoryJob(subset), created, instance) if event.is_failure]
    if failed:
        raise RunFailed(
            what=str(failed[0].message), where=str(settings.home), next_step="look at the run in Dagster's storage"
        )


def main(arguments: Sequence[str]) -> None:
    """Run the chain several times and report the times."""
    home, runs = arguments
    settings = config.load(overrides={"BLOGDATA_HOME": home})
    repository = definitions(settings).get_repository_def()
    report(lambda: run(settings, repository), int(runs))


def report(chain: Callable[[], object], runs: int) -> None:
    """Print the end of the first run and the seconds of every run, as JSON."""
    seconds = []
    first_ended = 0.0
    for _ in range(runs):
        started = time.time()
        chain()
        seconds.append(time.time() - started)
        first_ended = first_ended or time.time()
    print(json.dumps({"first_ended": first_ended, "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1:])
