"""(h) A merge of few rows into many: how many unchanged rows are rewritten."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from benchmarks.deployment import Bench
from benchmarks.measure import Case, Peer, Result, Size, Target, interleaved, ratio, say
from blogdata.lake.lake import Lake
from blogdata.patterns.idempotency.data_overwrite import overwrite_table
from blogdata.patterns.idempotency.merger import merge
from blogdata.publish.contract import Contract
from blogdata.publish.run import RunContext
from blogdata.publish.schema import Column
from blogdata.publish.target import Provenance
from blogdata.publish.target import Target as WriteTarget
from blogdata.publish.writes import Merge, Replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STANDARD_ROWS = 5_000_000
ONE_IN = 1000
FILES = 20
MARKED = Contract(
    dataset="bench.marked",
    description="Rows made up for a measurement",
    owner="team:platform",
    columns=(
        Column(name="id", type="BIGINT", nullable=False, description="Identifier"),
        Column(name="name", type="STRING", nullable=False, description="Name"),
        Column(name="amount", type="BIGINT", nullable=False, description="Amount"),
    ),
    key=("id",),
    write=Merge(),
)
COPIED = replace(MARKED, dataset="bench.copied", write=Replace())
METRICS = ("numTargetRowsUpdated", "numTargetRowsCopied", "numTargetFilesRemoved", "numTargetDeletionVectorsAdded")


def measure(bench: Bench, size: Size) -> Result:
    """Measure with a table of this many rows."""
    rows = size.visits or STANDARD_ROWS
    say(f"one row in {ONE_IN:,} of {rows:,} changes, {size.rounds} rounds")
    lake = Lake(root=str(bench.folder("merged") / "lake"))
    for contract in (MARKED, COPIED):
        start = _rows(bench.spark, rows, 0).repartition(FILES)
        overwrite_table(start, _target(lake, contract, "start"), Provenance())
    names = {"deletion vectors": MARKED, "files copied": COPIED}
    peers = [
        Peer(name=name, run=lambda number, contract=contract: _merge(bench, lake, contract, rows, number))  # type: ignore[misc]
        for name, contract in names.items()
    ]
    seconds = interleaved(peers, size.rounds, warm_ups=1)
    found = {name: _metrics(lake, contract) for name, contract in names.items()}
    marked = found["deletion vectors"]
    copied = marked["numTargetRowsCopied"] / marked["numTargetRowsUpdated"]
    target = Target(what="rows copied / rows changed", bound="at most", limit=5.0, found=round(copied, 3))
    case = Case(
        name=f"{rows:,} rows",
        seconds=seconds,
        ratios=[ratio(seconds, "deletion vectors", "files copied")],
        facts={"metrics of the last merge": found},
    )
    return Result(letter="h", title="A merge of few rows", cases=[case], targets=[target])


def _rows(spark: Any, rows: int, state: int) -> DataFrame:
    frame: DataFrame = spark.range(rows).select(
        "id", F.concat(F.lit("name "), F.col("id")).alias("name"), (F.col("id") % 97 + F.lit(state)).alias("amount")
    )
    return frame


def _merge(bench: Bench, lake: Lake, contract: Contract, rows: int, number: int) -> None:
    changed = _rows(bench.spark, rows, number + 1000).where(F.xxhash64("id", F.lit(number)) % ONE_IN == 0)
    merge(changed, _target(lake, contract, f"merge {number}"), Provenance(), deleted=None)


def _metrics(lake: Lake, contract: Contract) -> dict[str, int]:
    table = lake.caught_up(contract.dataset)
    assert table is not None
    (newest,) = table.history(1)
    return {name: int(newest["operationMetrics"][name]) for name in METRICS}


def _target(lake: Lake, contract: Contract, run: str) -> WriteTarget:
    return WriteTarget(lake=lake, contract=contract, run=RunContext(run_id=run, job="benchmark", code_version="1"))
