"""Dataset Tracker: the datasets a dataset is computed from, their owners, and whom to contact (dataset lineage).

Problem: a column disappears upstream, and it is unknown which reports break and who owns them.
How it works: every publication records the inputs it really read, with their versions; :func:`track` turns these
records and the owners in the contracts into a graph. Sources outside the lake are known from the files in a commit's
column lineage, or from the source that a stream's batch recorded; rows served to a database from the events of the
deliveries. :func:`export_openlineage` writes each publication as OpenLineage run events, for catalogs that collect the
lineage of a whole company.
The trap: lineage that is drawn by hand is wrong after the first change. Here an edge exists because a run read the
dataset; it disappears when the newest publications no longer read it.
When not to use it: to find the columns that a figure is computed from; that is the Fine-Grained Tracker.
Source: Data Engineering Design Patterns, ch. 10; OpenLineage specification 2-0-2 and its facets.
"""

import json
import uuid
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from blogdata.contract.contract import Contract
from blogdata.contract.publication import Commit, entries_of, parse
from blogdata.contract.writes import Feed, Serve
from blogdata.files import write_whole
from blogdata.ledger.deliveries import deliveries
from blogdata.ledger.events import EventLog
from blogdata.patterns.observability.fine_grained_tracker import ColumnSource, sources, streamed_from
from blogdata.table.lake import Lake

NAMESPACE = "blogdata"
"""Namespace of the jobs and datasets in a catalog."""
PRODUCER = "urn:blogdata:dataset-tracker"
SPEC = "https://openlineage.io/spec"
RUN_EVENT = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"


@dataclass(frozen=True, kw_only=True)
class Lineage:
    edges: Mapping[tuple[str, str], int | None]
    """Source and target to the newest version of the source that was read; None if a source has no versions."""
    contracts: Mapping[str, Contract]

    def datasets(self) -> list[str]:
        return sorted({*self.contracts, *(name for edge in self.edges for name in edge)})

    def upstream(self, dataset: str) -> set[str]:
        return _reached(dataset, [(target, source) for source, target in self.edges])

    def downstream(self, dataset: str) -> set[str]:
        return _reached(dataset, self.edges)

    def affected_teams(self, dataset: str) -> set[str]:
        """Return whom to notify before a dataset changes: owners of what is made of it, and all consumers."""
        below = self.downstream(dataset)
        owners = {self.contracts[name].owner for name in below}
        return owners.union(*(self.contracts[name].consumers for name in {dataset, *below} & self.contracts.keys()))


def _reached(dataset: str, steps: Iterable[tuple[str, str]]) -> set[str]:
    reached, waiting = set[str](), [dataset]
    while waiting:
        here = waiting.pop()
        new = {target for source, target in steps if source == here} - reached
        reached |= new
        waiting += new
    return reached


def track(lake: Lake, events: EventLog, contracts: Mapping[str, Contract], *, landing: str) -> Lineage:
    """Build the lineage graph from the inputs that the newest publications really read."""
    edges: dict[tuple[str, str], int | None] = {}
    for dataset, contract in contracts.items():
        for inputs in _newest_reads(events, contract):
            for source, version in inputs.items():
                edges[source, dataset] = max(version, edges.get((source, dataset)) or version)
        for source in _landed(lake, landing, dataset):
            edges.setdefault((source, dataset), None)
    return Lineage(edges=dict(sorted(edges.items())), contracts=contracts)


def publications(lake: Lake, dataset: str) -> Iterator[tuple[Commit, datetime]]:
    """Read the publications that a table's log still retains, and when they were committed, newest first."""
    table = lake.caught_up(dataset)
    for version, entry in lake.commits(table) if table is not None else []:
        info = parse(entry.get("userMetadata"))
        if info is not None:
            commit = Commit(dataset=dataset, version=version, entries=entries_of(dataset, version, info), info=info)
            yield commit, datetime.fromtimestamp(int(entry["timestamp"]) / 1000, tz=timezone.utc)


def export_openlineage(
    lake: Lake, events: EventLog, contracts: Mapping[str, Contract], *, landing: str, folder: Path
) -> int:
    """Write every publication that is not exported yet as OpenLineage run events, and return how many were.

    Each has a file with a START and a COMPLETE event, one per line: `<dataset>/<version>.json`, or
    `<dataset>/<UUID>.json` for a delivery to a database.
    """
    written = 0
    for dataset, contract in contracts.items():
        exported = {file.stem for file in folder.glob(f"{dataset}/*.json")}
        if isinstance(contract.write, Serve | Feed):
            new = _delivered(events, contracts, dataset, exported)
        else:
            new = _committed(lake, contracts, landing, dataset, exported)
        for name, run_events in new:
            content = "".join(f"{json.dumps(event)}\n" for event in run_events)
            write_whole(folder / dataset / f"{name}.json", content.encode())
            written += 1
    return written


def _newest_reads(events: EventLog, contract: Contract) -> Sequence[Mapping[str, int]]:
    if isinstance(contract.write, Serve | Feed):
        newest = {served.partition: served for served in deliveries(events, contract.dataset)}
        return [served.inputs for served in newest.values()]
    return [entry.inputs for entry in events.publications(contract.dataset).values()]


def _landed(lake: Lake, landing: str, dataset: str) -> set[str]:
    for commit, _ in publications(lake, dataset):
        columns = sources(lake, landing, commit).values()
        return {name for name in _read(columns) if name.startswith("landing.")} | streamed_from(commit)
    return set()


def _read(columns: Iterable[Sequence[ColumnSource]]) -> set[str]:
    return {source.dataset for origins in columns for source in origins}


def _delivered(
    events: EventLog, contracts: Mapping[str, Contract], dataset: str, exported: Container[str]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for served in deliveries(events, dataset):
        name, run = str(uuid.uuid5(uuid.NAMESPACE_URL, served.batch_id)), {"run_id": served.run_id, "job": served.job}
        if name not in exported:
            # The database records only one time per delivery.
            times = (served.served_at, served.served_at)
            yield name, _run_events(contracts, dataset, served.batch_id, served.inputs, run, times, rows=served.rows)


def _committed(
    lake: Lake, contracts: Mapping[str, Contract], landing: str, dataset: str, exported: Container[str]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for commit, committed_at in publications(lake, dataset):
        name, info = f"{commit.version:020d}", commit.info
        if name not in exported:
            columns = sources(lake, landing, commit)
            inputs = {**dict.fromkeys(_read(columns.values()) | streamed_from(commit)), **info["inputs"]}
            times = (datetime.fromtimestamp(float(info["started_at"]), tz=timezone.utc), committed_at)
            figures: dict[str, Any] = {"rows": commit.rows_out, "size": int(info["bytes"]), "columns": columns}
            yield name, _run_events(contracts, dataset, str(commit.version), inputs, info["run"], times, **figures)


def _run_events(
    contracts: Mapping[str, Contract],
    dataset: str,
    version: str,
    inputs: Mapping[str, int | None],
    run: Mapping[str, str | None],
    times: tuple[datetime, datetime],
    *,
    rows: int,
    size: int | None = None,
    columns: Mapping[str, Sequence[ColumnSource]] | None = None,
) -> list[dict[str, Any]]:
    """Build the START and the COMPLETE event that OpenLineage requires for a run."""
    statistics = {"rowCount": rows} if size is None else {"rowCount": rows, "size": size}
    output = {
        **_named(dataset),
        "facets": {**_described(contracts.get(dataset)), **_version(version), **_column_lineage(columns or {})},
        "outputFacets": {"outputStatistics": _facet("1-0-0", "OutputStatisticsOutputDatasetFacet", **statistics)},
    }
    run_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{NAMESPACE}/{dataset}@{version}"))
    common = {
        "producer": PRODUCER,
        "schemaURL": RUN_EVENT,
        "run": {"runId": run_id, "facets": _parent(run["job"], str(run["run_id"]))},
        "job": {**_named(dataset), "facets": {}},
        "inputs": [
            {**_named(name), "facets": {**_described(contracts.get(name)), **_version(read)}}
            for name, read in sorted(inputs.items())
        ],
    }
    return [
        {**common, "eventType": "START", "eventTime": times[0].isoformat(), "outputs": []},
        {**common, "eventType": "COMPLETE", "eventTime": times[1].isoformat(), "outputs": [output]},
    ]


def _named(name: str) -> dict[str, str]:
    return {"namespace": NAMESPACE, "name": name}


def _parent(job: str | None, run_id: str) -> dict[str, Any]:
    return (
        {}
        if job is None
        else {"parent": _facet("1-0-1", "ParentRunFacet", run={"runId": _uuid(run_id)}, job=_named(job))}
    )


def _described(contract: Contract | None) -> dict[str, Any]:
    if contract is None:
        return {}
    columns = [{"name": c.name, "type": c.type, "description": c.description} for c in contract.columns]
    teams = [{"name": contract.owner, "type": "OWNER"}]
    teams += [{"name": team, "type": "CONSUMER"} for team in contract.consumers]
    return {
        **({"schema": _facet("1-0-0", "SchemaDatasetFacet", fields=columns)} if columns else {}),
        "ownership": _facet("1-0-0", "OwnershipDatasetFacet", owners=teams),
        "documentation": _facet("1-0-0", "DocumentationDatasetFacet", description=contract.description),
    }


def _version(version: str | int | None) -> dict[str, Any]:
    if version is None:
        return {}
    return {"version": _facet("1-0-0", "DatasetVersionDatasetFacet", datasetVersion=str(version))}


def _column_lineage(columns: Mapping[str, Sequence[ColumnSource]]) -> dict[str, Any]:
    fields = {
        column: {"inputFields": [{**_named(source.dataset), "field": source.column} for source in origins]}
        for column, origins in columns.items()
    }
    return {"columnLineage": _facet("1-0-1", "ColumnLineageDatasetFacet", fields=fields)} if fields else {}


def _facet(version: str, name: str, **content: Any) -> dict[str, Any]:
    url = f"{SPEC}/facets/{version}/{name}.json#/$defs/{name}"
    return {"_producer": PRODUCER, "_schemaURL": url, **content}


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, text))
