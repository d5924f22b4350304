from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from blogdata.contract.contract import Contract, Read
from blogdata.contract.partitions import Grain
from blogdata.contract.publication import Account
from blogdata.planning.reach import SAME
from blogdata.runs.landed_inputs import Landed
from blogdata.runs.step import Step, Upstream
from blogdata.table.faults import NotDeclared
from blogdata.table.lake import Lake
from blogdata.table.target import Companion
from toy import HOURS, WHOLE
from toy import step as step_of

INPUT, SECRET = "bronze.clicks", "silver.users"
CONTRACT = replace(WHOLE, reads=(Read(dataset=INPUT, reach=SAME), Read(dataset="landing.visits", reach=SAME)))


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    """A lake with the input of a job, and a table that the job does not declare."""
    lake = Lake(root=str(lake_root))
    for dataset in (INPUT, SECRET):
        rows = {"hour": list(HOURS), "click": pa.array([1, 2], pa.int64()), "stands_for": pa.array([1, 1], pa.int64())}
        write_deltalake(lake.path(dataset), pa.table({**rows, "page": ["/a", "/b"]}))
    return lake


def job(spark: Any, lake: Lake, contract: Contract = CONTRACT, run: str = "run-1") -> Step:
    return step_of(spark, Path(lake.root), contract, run=run)


def published(step: Step, frame: Any) -> list[Any]:
    step.publish(frame, Upstream(accounts={"": Account(rows_in=2)}))
    rows: list[Any] = step.lake.read(step.spark, CONTRACT.dataset).collect()
    return rows


def test_a_step_reads_what_its_contract_declares(spark: Any, lake: Lake) -> None:
    step = job(spark, lake)
    assert len(published(step, step.read(INPUT))) == 2
    # What it joins is declared by another contract.
    both = replace(CONTRACT, reads=(*CONTRACT.reads, Read(dataset=SECRET, reach=SAME)))
    assert job(spark, lake, both).read(SECRET).count() == 2


@pytest.mark.parametrize(
    "reach",
    [
        lambda step: step.read(SECRET),
        lambda step: step.pin(SECRET),
        lambda step: step.exists(SECRET),
        lambda step: step.lake.read(step.spark, SECRET),
        lambda step: step.lake.read(step.spark, SECRET, 0),
        lambda step: step.lake.columns(SECRET, ["page"]),
        lambda step: step.lake.row_counts(SECRET, None),
        lambda step: Landed.of(step, "users", Grain.DAY, ["2026-01-05"]),
    ],
)
def test_a_step_that_reaches_beyond_fails(spark: Any, lake: Lake, reach: Any) -> None:
    with pytest.raises(NotDeclared, match="which it does not declare") as refused:
        reach(job(spark, lake))
    assert (refused.value.where, refused.value.reached in (SECRET, "landing.users")) == (CONTRACT.dataset, True)
    assert "declare it among the inputs of silver.whole" in refused.value.next_step


def test_a_path_put_together_by_hand_is_found_in_the_plan(spark: Any, lake: Lake) -> None:
    step = job(spark, lake)
    before = published(step, step.read(INPUT))
    version = lake.version(CONTRACT.dataset)
    hidden = step.spark.read.format("delta").load(f"file:{lake.root}/silver/users")
    frame = step.read(INPUT).join(hidden.select("click"), "click", "left_semi")
    with pytest.raises(NotDeclared, match=r"reads silver\.users, which it does not declare"):
        published(job(spark, lake, run="run-2"), frame)
    assert lake.version(CONTRACT.dataset) == version
    assert lake.read(spark, CONTRACT.dataset).collect() == before


def test_a_step_publishes_no_dataset_of_another_job(spark: Any, lake: Lake) -> None:
    step = job(spark, lake)
    other = Companion(
        contract=replace(WHOLE, dataset="silver.others"),
        frame=step.read(INPUT),
        counted_measure="rows",
        kept_measure="rows",
        dropped_reason="others",
    )
    with pytest.raises(NotDeclared, match=r"the job writes silver\.others, which it does not declare"):
        step.publish(step.read(INPUT), companions=[other])
    assert lake.version("silver.others") is None
