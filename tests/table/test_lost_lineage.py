"""A column with a reader is not removed, even if its lineage is hard to see or was not recorded.

Pattern: Fine-Grained Tracker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake
from pyspark.sql import functions as F

import toy
from blogdata.contract.contract import Read
from blogdata.contract.publication import Commit
from blogdata.ledger.events import EventLog
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.observability import fine_grained_tracker
from blogdata.patterns.quality import schema_migrator
from blogdata.planning.reach import SAME
from blogdata.table import kept_rows
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance

CLICKS = toy.CONTRACT.dataset
COPY = replace(toy.CONTRACT, dataset="gold.copies", reads=(Read(dataset=CLICKS, reach=SAME),))
COLUMNS = [column.name for column in COPY.columns]
ALL = set(COLUMNS)


def publish(frame: Any, root: Path, run: str, contract: Any = COPY) -> Commit:
    target = toy.target(root, run, contract)
    return overwrite_partitions(frame.select(COLUMNS), target, toy.HOURS, Provenance())


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    root = tmp_path_factory.mktemp("lost")
    publish(toy.clicks(spark), root, "clicks", toy.CONTRACT)
    return Lake(root=str(root))


@pytest.fixture
def clicks(spark: Any, lake: Lake) -> Any:
    """Build rows that read only the key column: all others are constants."""
    frame = lake.read(spark, CLICKS)
    constants = {"hour": F.lit(toy.HOURS[0]), "stands_for": F.lit(1).cast("bigint"), "page": F.lit("/")}
    assert set(frame.columns) == ALL
    return frame, lambda rows: rows.dropDuplicates(["click"]).withColumns(constants)


def read(lake: Lake, commit: Commit) -> set[str] | None:
    """Return the columns of the clicks that a publication records as read."""
    found = fine_grained_tracker.read(lake, "/landing", commit)
    return None if found is None else {source.column for source in found if source.dataset == CLICKS}


def sources(lake: Lake, commit: Commit) -> dict[str, set[str]]:
    """Map each computed column to the columns of the clicks it comes from."""
    found = fine_grained_tracker.sources(lake, "/landing", commit)
    return {name: {source.column for source in of} for name, of in found.items() if of}


def readers(lake: Lake, column: str, contracts: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the readers of a column of the clicks, and the evidence for each."""
    declared = contracts or {COPY.dataset: COPY}
    found = schema_migrator.readers(lake, EventLog(lake), declared, CLICKS, column, landing="/landing")
    return {reader.name: reader.how for reader in found}


def test_a_column_is_read_whatever_it_is_used_for(spark: Any, lake: Lake, clicks: Any) -> None:
    frame, filled = clicks
    rows = frame.where(F.col("click") < frame.agg(F.length(F.max("page"))).scalar())
    commit = publish(filled(rows), Path(lake.root), "subquery")
    assert sources(lake, commit).get("page") is None
    assert read(lake, commit) == {"click", "page"}
    assert readers(lake, "page") == {COPY.dataset: "column lineage"}
    assert readers(lake, "stands_for") == {}


def test_kept_rows_know_what_they_were_computed_from(spark: Any, lake: Lake, clicks: Any) -> None:
    frame, _ = clicks
    swapped = frame.selectExpr(
        "hour", "1000 * stands_for + click AS click", "click AS stands_for", "concat(page, hour) AS page"
    )
    expected = {"hour": {"hour"}, "click": {"click", "stands_for"}, "stands_for": {"click"}, "page": {"page", "hour"}}
    with kept_rows.computed(swapped) as kept, kept_rows.computed(kept.where("click >= 0")) as twice:
        # Spark assigns new column identifiers in a self-join.
        itself = twice.join(twice.selectExpr("click AS id", "page AS other"), F.col("click") == F.col("id"))
        joined = itself.select("hour", "click", "stands_for", F.col("other").alias("page"))
        assert sources(lake, publish(joined, Path(lake.root), "joined with itself")) == expected


def recorded(lake: Lake, dataset: str, *, read: list[str] | None, code: str = "new", **more: Any) -> None:
    """Commit one hour, or the given parts of it, as the current or an earlier platform records it."""
    lineage = [f"file:{lake.path(CLICKS)}#{column}" for column in read or ()]
    info = {
        "commit_id": f"{dataset} {code} {read}",
        "column_lineage": {"page": lineage},
        **({} if read is None else {"columns_read": lineage}),
        "measures": {"hour": {"rows": 1, "accounted": 1}},
        "accounts": {}, "reasons": [], "own_measures": [], "breakdowns": {}, "inputs": {},
        "partition_column": "hour",
        "run": {"run_id": "run", "code_version": code},
        **more,
    }  # fmt: skip
    properties = CommitProperties(custom_metadata={"userMetadata": json.dumps(info)})
    write_deltalake(lake.path(dataset), pa.table({"page": ["/"]}), mode="append", commit_properties=properties)


def hour(key: str) -> dict[str, Any]:
    return {"measures": {key: {"rows": 1, "accounted": 1}}}


def test_the_newest_code_decides_what_a_dataset_reads(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    recorded(lake, COPY.dataset, read=None, code="old", **hour("a"))
    assert "run it again a" in readers(lake, "page")[COPY.dataset]
    # Each partition may show another part of what the current code reads.
    recorded(lake, COPY.dataset, read=["page"], **hour("b"))
    recorded(lake, COPY.dataset, read=["click"], **hour("c"))
    assert set(readers(lake, "page")) == set(readers(lake, "click")) == {COPY.dataset}
    recorded(lake, COPY.dataset, read=["click"], **hour("b"))
    assert readers(lake, "page") == {}
    # A platform rolled back to an earlier version, or without the engine, for one hour.
    recorded(lake, COPY.dataset, read=None, **hour("d"))
    assert "run it again d" in readers(lake, "page")[COPY.dataset]
    recorded(lake, COPY.dataset, read=["click"], **hour("d"))
    assert readers(lake, "page") == {}


def test_an_input_that_no_publication_names_is_read_by_other_means(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    recorded(lake, COPY.dataset, read=[])
    assert "its contract has to say" in readers(lake, "page")[COPY.dataset]
    says = replace(COPY, reads=(Read(dataset=CLICKS, reach=SAME, columns=("click",)),))
    assert readers(lake, "page", {COPY.dataset: says}) == {}
    assert readers(lake, "click", {COPY.dataset: says}) == {
        COPY.dataset: "reads it outside Spark, as its contract says"
    }
