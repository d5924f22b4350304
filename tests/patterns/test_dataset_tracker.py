"""Dataset Tracker: edges are what runs really read; every publication is exported as OpenLineage events."""

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
from blogdata.ledger.deliveries import Served, record_deliveries
from blogdata.ledger.events import EventLog
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.observability.dataset_tracker import Lineage, export_openlineage, track
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
FACETS = {
    "parent": {"run", "job"},
    "schema": {"fields"},
    "ownership": {"owners"},
    "documentation": {"description"},
    "version": {"datasetVersion"},
    "columnLineage": {"fields"},
    "outputStatistics": {"rowCount", "size"},
}


def check(event: dict[str, Any]) -> None:
    """Check an event against the specification, where only the size of an output is optional."""
    assert set(event) == EVENT
    uuid.UUID(event["run"]["runId"])
    assert event["eventTime"].endswith("Z")
    for holder in (event["run"], event["job"], *event["inputs"], *event["outputs"]):
        assert holder is event["run"] or {"namespace", "name"} <= set(holder)
        for name, facet in {**holder.get("facets", {}), **holder.get("outputFacets", {})}.items():
            assert FACETS[name] - {"size"} <= set(facet) - {"_producer", "_schemaURL"} <= FACETS[name]
            assert facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/")


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
    assert lineage.edges == {
        ("bronze.views", "silver.views"): lake.version("bronze.views"),
        ("landing.views", "bronze.views"): None,
        ("silver.views", "gold.stats"): lake.version("silver.views"),
    }
    assert lineage.upstream("gold.stats") == {"silver.views", "bronze.views", "landing.views"}
    assert lineage.downstream("landing.views") == {"bronze.views", "silver.views", "gold.stats"}
    assert lineage.upstream("gold.alone") == lineage.downstream("gold.stats") == set()
    assert lineage.affected_teams("bronze.views") == {"team:analytics", "team:tests", "team:editors"}


def test_an_input_no_longer_read_loses_its_edge(spark: Any, home: Path, tmp_path: Path) -> None:
    lake = Lake(root=str(shutil.copytree(home / "lake", tmp_path / "lake")))
    rows = spark.createDataFrame([(DAY, "/a")], "day STRING, page STRING")
    write(lake, CLEAN, rows, replace(RUN, run_id="another"), bronze__other=1)
    graph = track(lake, EventLog(lake), CONTRACTS, landing=str(home / "landing"))
    assert graph.upstream("silver.views") == {"bronze.other"}


def exported(folder: Path, dataset: str) -> list[dict[str, Any]]:
    files = sorted((folder / dataset).iterdir())
    events = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    for event in events:
        check(event)
    return events


def test_a_publication_is_exported_with_the_sources_of_its_columns(home: Path, tmp_path: Path) -> None:
    lake = Lake(root=str(home / "lake"))
    assert export_openlineage(lake, EventLog(lake), CONTRACTS, landing=str(home / "landing"), folder=tmp_path) == 3
    start, complete = exported(tmp_path, "gold.stats")
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert start["eventTime"] <= complete["eventTime"]
    parent = complete["run"]["facets"]["parent"]
    assert (parent["run"]["runId"], parent["job"]) == (RUN.run_id, {"namespace": "blogdata", "name": "daily"})
    (output,) = complete["outputs"]
    assert output["facets"]["columnLineage"]["fields"]["views"] == {
        "inputFields": [{"namespace": "blogdata", "name": "silver.views", "field": "page"}]
    }
    assert [field["name"] for field in output["facets"]["schema"]["fields"]] == ["day", "views"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 1
    owners = {owner["type"]: owner["name"] for owner in output["facets"]["ownership"]["owners"]}
    assert owners == {"OWNER": "team:tests", "CONSUMER": "team:editors"}


def test_deliveries_to_a_database_are_exported_with_their_input_versions(tmp_path: Path) -> None:
    lake, landing = Lake(root=str(tmp_path / "lake")), str(tmp_path / "landing")
    log = EventLog(lake)
    contract = Contract(
        dataset="serving.stats", description="Stats", owner="team:shop", columns=(), write=Serve(schema="serving")
    )
    contracts = {**CONTRACTS, contract.dataset: contract}

    def served(batch: str, hour: int, inputs: dict[str, int]) -> Served:
        at = datetime(2026, 1, 6, hour, tzinfo=timezone.utc)
        return Served(batch_id=batch, partition=DAY, inputs=inputs, rows=3, run_id=RUN.run_id, served_at=at)

    first, second = served("one", 1, {"gold.stats": 4, "gold.alone": 9}), served("two", 2, {"gold.stats": 7})
    record_deliveries(log, contract.dataset, [first], job_of=lambda run: "refresh")
    record_deliveries(log, contract.dataset, [first, second], job_of=lambda run: None)
    assert track(lake, log, contracts, landing=landing).edges == {("gold.stats", "serving.stats"): 7}
    assert export_openlineage(lake, log, contracts, landing=landing, folder=tmp_path) == 2
    assert export_openlineage(lake, log, contracts, landing=landing, folder=tmp_path) == 0
    deliveries = {
        event["outputs"][0]["facets"]["version"]["datasetVersion"]: (
            {source["name"]: source["facets"]["version"]["datasetVersion"] for source in event["inputs"]},
            event["run"]["facets"].get("parent", {}).get("job", {}).get("name"),
        )
        for event in exported(tmp_path, contract.dataset)
        if event["eventType"] == "COMPLETE"
    }
    assert deliveries == {
        "one": ({"gold.stats": "4", "gold.alone": "9"}, "refresh"),
        "two": ({"gold.stats": "7"}, None),
    }
