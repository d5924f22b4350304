from __future__ import annotations

import json
import shutil
import uuid
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain
from blogdata.contract.schema import Partitioning
from blogdata.contract.writes import Serve
from blogdata.ledger.deliveries import Served, deliveries, record_deliveries
from blogdata.ledger.events import EventLog
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.observability.dataset_tracker import (
    Lineage,
    LineageEdge,
    export_openlineage,
    track,
)
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance, RunContext, Target
from toy import declared

BY_DAY = Partitioning(column="day", grain=Grain.DAY)
RAW = declared("bronze.views", "day STRING NOT NULL, page STRING", partitioning=BY_DAY)
CLEAN = replace(RAW, dataset="silver.views", owner="team:analytics")
STATS = declared(
    "gold.stats",
    "day STRING NOT NULL, views BIGINT",
    consumers=("team:editors",),
    partitioning=BY_DAY,
    stands_for="sum(views)",
    reasons={"aggregated": "sum(views) - count(1)"},
)
ALONE = replace(RAW, dataset="gold.alone")
CONTRACTS = {contract.dataset: contract for contract in (RAW, CLEAN, STATS, ALONE)}
DAY = "2026-01-05"
RUN = RunContext(run_id="0b9c7a5e-6a4a-4d3c-9a51-3f0a8c1d2e4f", job="daily", code_version="c1")

EVENT = {"eventType", "eventTime", "run", "job", "inputs", "outputs", "producer", "schemaURL"}
REQUIRED = {
    "parent": {"run", "job"},
    "schema": {"fields"},
    "ownership": {"owners"},
    "documentation": {"description"},
    "version": {"datasetVersion"},
    "columnLineage": {"fields"},
    "outputStatistics": {"rowCount"},
}
OPTIONAL = {"outputStatistics": {"size"}}


def check(event: dict[str, Any]) -> set[str]:
    """Check an event against the specification; return the names of its facets."""
    assert set(event) == EVENT
    uuid.UUID(event["run"]["runId"])
    assert event["eventTime"].endswith("Z")
    assert event["schemaURL"].endswith("#/$defs/RunEvent")
    seen = set()
    for holder in (event["run"], event["job"], *event["inputs"], *event["outputs"]):
        assert holder is event["run"] or {"namespace", "name"} <= set(holder)
        for name, facet in {**holder.get("facets", {}), **holder.get("outputFacets", {})}.items():
            seen.add(name)
            fields = set(facet) - {"_producer", "_schemaURL"}
            assert REQUIRED[name] <= fields <= REQUIRED[name] | OPTIONAL.get(name, set())
            assert facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/")
            assert facet["_producer"]
    return seen


def write(lake: Lake, contract: Contract, frame: Any, run: RunContext = RUN, **inputs: int) -> None:
    versions = {name.replace("__", "."): version for name, version in inputs.items()}
    target = Target(lake=lake, contract=contract, run=run)
    EventLog(lake).record(overwrite_partitions(frame, target, [DAY], Provenance(inputs=versions)))


@pytest.fixture(scope="module")
def home(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A landing zone, and three datasets computed from it, one after the other."""
    home = tmp_path_factory.mktemp("home")
    lake = Lake(root=str(home / "lake"))
    folder = home / "landing" / "views"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text(f"{DAY},/a\n{DAY},/b\n")
    landed = spark.read.schema("day STRING, page STRING").csv(str(folder / "a.csv"))
    write(lake, RAW, landed)
    bronze = lake.read(spark, RAW.dataset, lake.version(RAW.dataset))
    write(lake, CLEAN, bronze, bronze__views=lake.version(RAW.dataset) or 0)
    silver = lake.read(spark, CLEAN.dataset)
    stats = silver.groupBy("day").agg({"page": "count"}).withColumnRenamed("count(page)", "views")
    write(lake, STATS, stats, silver__views=lake.version(CLEAN.dataset) or 0)
    return home


@pytest.fixture(scope="module")
def lineage(home: Path) -> Lineage:
    lake = Lake(root=str(home / "lake"))
    return track(lake, EventLog(lake), CONTRACTS, landing=str(home / "landing"))


def test_an_edge_is_what_a_run_really_read(lineage: Lineage, home: Path) -> None:
    lake = Lake(root=str(home / "lake"))
    assert lineage.edges == (
        LineageEdge(source="bronze.views", target="silver.views", version=lake.version("bronze.views")),
        LineageEdge(source="landing.views", target="bronze.views"),
        LineageEdge(source="silver.views", target="gold.stats", version=lake.version("silver.views")),
    )
    assert [lineage.nodes[name].owner for name in ("landing.views", "gold.alone")] == [None, "team:tests"]


def test_lineage_finds_all_upstream_and_downstream_datasets(lineage: Lineage) -> None:
    assert lineage.upstream("gold.stats") == {"silver.views", "bronze.views", "landing.views"}
    assert lineage.downstream("landing.views") == {"bronze.views", "silver.views", "gold.stats"}
    assert lineage.upstream("gold.alone") == lineage.downstream("gold.stats") == frozenset()


def test_an_input_no_longer_read_loses_its_edge(spark: Any, home: Path, tmp_path: Path) -> None:
    lake = Lake(root=str(shutil.copytree(home / "lake", tmp_path / "lake")))
    rows = spark.createDataFrame([(DAY, "/a")], "day STRING, page STRING")
    write(lake, CLEAN, rows, replace(RUN, run_id="another"), bronze__other=1)
    found = track(lake, EventLog(lake), CONTRACTS, landing=str(home / "landing"))
    assert found.upstream("silver.views") == {"bronze.other"}


def events(folder: Path, dataset: str) -> list[dict[str, Any]]:
    (file,) = sorted((folder / dataset).iterdir())
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture(scope="module")
def exported(home: Path) -> Path:
    lake = Lake(root=str(home / "lake"))
    folder = home / "openlineage"
    assert export_openlineage(lake, EventLog(lake), CONTRACTS, landing=str(home / "landing"), folder=folder) == 3
    return folder


def test_a_publication_exports_start_and_complete_events(exported: Path) -> None:
    start, complete = events(exported, "silver.views")
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert start["eventTime"] <= complete["eventTime"]
    for event in (start, complete):
        check(event)
    assert complete["run"]["facets"]["parent"]["run"]["runId"] == RUN.run_id
    assert complete["run"]["facets"]["parent"]["job"] == {"namespace": "blogdata", "name": "daily"}


def test_exported_columns_name_their_source_columns(exported: Path) -> None:
    _, complete = events(exported, "gold.stats")
    (output,) = complete["outputs"]
    assert output["facets"]["columnLineage"]["fields"]["views"] == {
        "inputFields": [{"namespace": "blogdata", "name": "silver.views", "field": "page"}]
    }
    assert [field["name"] for field in output["facets"]["schema"]["fields"]] == ["day", "views"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 1
    assert output["facets"]["ownership"]["owners"] == [
        {"name": "team:tests", "type": "OWNER"},
        {"name": "team:editors", "type": "CONSUMER"},
    ]


def test_served_deliveries_are_exported_with_their_input_versions(tmp_path: Path) -> None:
    lake, landing = Lake(root=str(tmp_path / "lake")), str(tmp_path / "landing")
    log = EventLog(lake)
    contract = Contract(
        dataset="serving.stats", description="Stats", owner="team:shop", columns=(), write=Serve(schema="serving")
    )
    contracts = {**CONTRACTS, contract.dataset: contract}

    def served(batch: str, hour: int, **inputs: int) -> Served:
        versions = {name.replace("__", "."): version for name, version in inputs.items()}
        at = datetime(2026, 1, 6, hour, tzinfo=timezone.utc)
        return Served(batch_id=batch, partition=DAY, inputs=versions, rows=3, run_id=RUN.run_id, served_at=at)

    first, second = served("one", 1, gold__stats=4, gold__alone=9), served("two", 2, gold__stats=7)
    record_deliveries(log, contract.dataset, [first], job_of=lambda run: "refresh")
    record_deliveries(log, contract.dataset, [first, second], job_of=lambda run: None)
    assert [(one.batch_id, one.job) for one in deliveries(log, contract.dataset)] == [("one", "refresh"), ("two", None)]

    graph = track(lake, log, contracts, landing=landing)
    assert graph.edges == (LineageEdge(source="gold.stats", target="serving.stats", version=7),)
    assert export_openlineage(lake, log, contracts, landing=landing, folder=tmp_path) == 2
    assert export_openlineage(lake, log, contracts, landing=landing, folder=tmp_path) == 0
    found = [
        json.loads(line) for file in (tmp_path / contract.dataset).iterdir() for line in file.read_text().splitlines()
    ]
    assert all(check(event) for event in found)
    told = {
        event["outputs"][0]["facets"]["version"]["datasetVersion"]: (
            {one["name"]: one["facets"]["version"]["datasetVersion"] for one in event["inputs"]},
            event["run"]["facets"].get("parent", {}).get("job", {}).get("name"),
        )
        for event in found
        if event["eventType"] == "COMPLETE"
    }
    assert told == {"one": ({"gold.stats": "4", "gold.alone": "9"}, "refresh"), "two": ({"gold.stats": "7"}, None)}
