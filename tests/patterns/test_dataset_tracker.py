import json
import uuid
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from blogdata.contract.contract import Contract
from blogdata.contract.writes import Serve
from blogdata.ledger.deliveries import Served, record_deliveries
from blogdata.ledger.events import EventLog
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.observability.dataset_tracker import export_openlineage, track
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance, RunContext, Target
from toy import declared

RAW = declared("bronze.views", "day STRING NOT NULL, page STRING", by="day")
CLEAN = replace(RAW, dataset="silver.views", owner="team:analytics")
STATS = declared(
    "gold.stats",
    "day STRING NOT NULL, views BIGINT",
    consumers=("team:editors",),
    by="day",
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
    assert datetime.fromisoformat(event["eventTime"]).utcoffset() is not None
    for holder in (event["run"], event["job"], *event["inputs"], *event["outputs"]):
        assert holder is event["run"] or {"namespace", "name"} <= set(holder)
        for name, facet in {**holder.get("facets", {}), **holder.get("outputFacets", {})}.items():
            assert FACETS[name] - {"size"} <= set(facet) - {"_producer", "_schemaURL"} <= FACETS[name]
            assert facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/")


def write(lake: Lake, contract: Contract, frame: Any, run: RunContext = RUN, read: str | None = None) -> None:
    inputs = {} if read is None else {read: lake.version(read) or 0}
    target = Target(lake=lake, contract=contract, run=run)
    EventLog(lake).record(overwrite_partitions(frame, target, [DAY], Provenance(inputs=inputs)))


def exported(folder: Path, dataset: str) -> list[dict[str, Any]]:
    files = sorted((folder / dataset).iterdir())
    events = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    for event in events:
        check(event)
    return events


def test_lineage_and_its_export_are_what_runs_really_read(spark: Any, tmp_path: Path) -> None:
    lake, landing = Lake(root=str(tmp_path / "lake")), tmp_path / "landing"
    (landing / "views").mkdir(parents=True)
    (landing / "views" / "a.csv").write_text(f"{DAY},/a\n{DAY},/b\n")
    write(lake, RAW, spark.read.schema("day STRING, page STRING").csv(str(landing / "views" / "a.csv")))
    write(lake, CLEAN, lake.read(spark, RAW.dataset), read="bronze.views")
    stats = lake.read(spark, CLEAN.dataset).groupBy("day").agg({"page": "count"})
    write(lake, STATS, stats.withColumnRenamed("count(page)", "views"), read="silver.views")

    graph = track(lake, EventLog(lake), CONTRACTS, landing=str(landing))
    assert graph.edges == {
        ("bronze.views", "silver.views"): lake.version("bronze.views"),
        ("landing.views", "bronze.views"): None,
        ("silver.views", "gold.stats"): lake.version("silver.views"),
    }
    assert graph.upstream("gold.stats") == {"silver.views", "bronze.views", "landing.views"}
    assert graph.downstream("landing.views") == {"bronze.views", "silver.views", "gold.stats"}
    assert graph.upstream("gold.alone") == graph.downstream("gold.stats") == set()
    assert graph.affected_teams("bronze.views") == {"team:analytics", "team:tests", "team:editors"}

    assert export_openlineage(lake, EventLog(lake), CONTRACTS, landing=str(landing), folder=tmp_path) == 3
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

    # An input that is no longer read loses its edge.
    rows = spark.createDataFrame([(DAY, "/a")], "day STRING, page STRING")
    write(lake, CLEAN, rows, replace(RUN, run_id="another"), read="bronze.other")
    assert track(lake, EventLog(lake), CONTRACTS, landing=str(landing)).upstream("silver.views") == {"bronze.other"}


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
