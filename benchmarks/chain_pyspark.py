"""The peers' side of (b): the same three assets with dagster-pyspark, which has no audits, accounts or server.

As a code location it is run by `dagster job execute`, every step in a process with a Java of its own. As a process,
`python -m benchmarks.chain_pyspark RUNS` materializes the chain in one process, with one Java.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
from dagster_pyspark import PySparkResource
from pyspark.sql import functions as F

SETUP = "BENCHMARK_CHAIN"
"""Names the file with `lake` and `conf`: what Spark is configured with."""
DAY = "2026-01-05"
STEPS = ("first", "second", "third")


def _declare(name: str, above: str, lake: str) -> dg.AssetsDefinition:
    @dg.asset(name=name, deps=[above])
    def add_column(pyspark: PySparkResource) -> None:
        rows = pyspark.spark_session.read.format("delta").load(f"{lake}/{above}").where(F.col("day") == DAY)
        added = rows.withColumn(name, F.col("value") + 1)
        writer = added.write.format("delta").mode("overwrite").partitionBy("day")
        writer.option("replaceWhere", f"day = '{DAY}'").save(f"{lake}/{name}")

    return add_column


def _setup() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(os.environ[SETUP]).read_text(encoding="utf-8"))
    return found


def _assets(lake: str) -> list[dg.AssetsDefinition]:
    return [_declare(name, above, lake) for name, above in zip(STEPS, ("source", *STEPS), strict=False)]


@dg.definitions
def defs() -> dg.Definitions:
    """The code location of the multiprocess peer."""
    setup = _setup()
    return dg.Definitions(
        assets=_assets(setup["lake"]),
        jobs=[dg.define_asset_job("chain", selection=list(STEPS), executor_def=dg.multiprocess_executor)],
        resources={"pyspark": PySparkResource(spark_config=setup["conf"])},
    )


def main(arguments: Sequence[str]) -> None:
    """Materialize the chain several times in this process."""
    from benchmarks.chain_platform import report

    setup = _setup()
    assets = _assets(setup["lake"])
    pyspark = PySparkResource(spark_config=setup["conf"])

    def chain() -> None:
        with dg.DagsterInstance.get() as instance:
            dg.materialize(assets, resources={"pyspark": pyspark}, instance=instance)

    report(chain, int(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
