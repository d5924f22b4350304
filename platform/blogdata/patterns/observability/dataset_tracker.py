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

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from blogdata.contract.contract import Contract
from blogdata.contract.publication import Commit, entries_of, parse
from blogdata.contract.writes import Feed, Serve
from blogdata.files import write_whole
from blogdata.ledger.deliveries import Served, deliveries
from blogdata.ledger.events import EventLog
from blogdata.patterns.observability.fine_grained_tracker import ColumnSource, sources
from blogdata.table.lake import Lake
from blogdata.table.target import READ

NAMESPACE = "blogdata"
"""Namespace of the jobs and datasets in a catalog."""
PRODUCER = "urn:blogdata:dataset-tracker"
SPEC = "https://openlineage.io/spec"
RUN_EVENT = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"


@dataclass(frozen=True, kw_only=True)
class LineageEdge:
    """A source dataset that was read to compute a target, with the newest version read; None if it has no versions."""

    source: str
    target: str
    version: int | None = None


@dataclass(frozen=True, kw_only=True)
class Node:
    """A dataset, its owner (None outside the platform), and the teams that use it outside of the lineage."""

    dataset: str
    owner: str | None
    consumers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lineage:
    nodes: Mapping[str, Node]
    edges: tuple[LineageEdge, ...]

    def upstream(self, dataset: str) -> frozenset[str]:
        return self._reached(dataset, [(edge.target, edge.source) for edge in self.edges])

    def downstream(self, dataset: str) -> frozenset[str]:
        return self._reached(dataset, [(edge.source, edge.target) for edge in self.edges])

    def affected_teams(self, dataset: str) -> frozenset[str]:
        """Return whom to notify before a dataset changes: owners of what is made of it, and all consumers."""
        below = self.downstream(dataset)
        owners = {self.nodes[name].owner for name in below}
        consumers = {team for name in {dataset, *below} for team in self.nodes[name].consumers}
        return frozenset(team for team in owners | consumers if team is not None)

    def _reached(self, dataset: str, steps: Sequence[tuple[str, str]]) -> frozenset[str]:
        found, waiting = set[str](), [dataset]
        while waiting:
            here = waiting.pop()
            new = {there for start, there in steps if start == here} - found
            found |= new
            waiting += new
        return frozenset(found)


@dataclass(frozen=True, kw_only=True)
class Published:
    commit: Commit
    committed_at: datetime


@dataclass(frozen=True, kw_only=True)
class PublishedVersion:
    """One publication to export, either a commit of a table or a delivery to a database; inputs may have no version."""

    dataset: str
    version: str
    run_id: str
    job: str | None
    started_at: datetime
    ended_at: datetime
    inputs: Mapping[str, int | None]
    rows: int
    bytes: int | None = None
    columns: Mapping[str, Sequence[ColumnSource]] = field(default_factory=dict)


def track(lake: Lake, events: EventLog, contracts: Mapping[str, Contract], *, landing: str) -> Lineage:
    """Build the lineage graph from the inputs that the newest publications really read."""
    newest: dict[tuple[str, str], int | None] = {}
    for dataset, contract in contracts.items():
        for inputs in _newest_reads(events, contract):
            for source, version in inputs.items():
                newest[source, dataset] = max(version, newest.get((source, dataset)) or version)
        for source in _landed(lake, landing, dataset):
            newest.setdefault((source, dataset), None)
    edges = tuple(
        LineageEdge(source=source, target=target, version=newest[source, target]) for source, target in sorted(newest)
    )
    nodes = {name: Node(dataset=name, owner=None) for edge in edges for name in (edge.source, edge.target)}
    for name, contract in contracts.items():
        nodes[name] = Node(dataset=name, owner=contract.owner, consumers=contract.consumers)
    return Lineage(nodes=dict(sorted(nodes.items())), edges=edges)


def publications(lake: Lake, dataset: str) -> Iterator[Published]:
    """Read the publications that a table's log still retains, newest first."""
    table = lake.caught_up(dataset)
    for version, entry in lake.commits(table) if table is not None else []:
        info = parse(entry.get("userMetadata"))
        if info is not None:
            yield Published(
                commit=Commit(dataset=dataset, version=version, entries=entries_of(dataset, version, info), info=info),
                committed_at=datetime.fromtimestamp(int(entry["timestamp"]) / 1000, tz=timezone.utc),
            )


def export_openlineage(
    lake: Lake,
    events: EventLog,
    contracts: Mapping[str, Contract],
    *,
    landing: str,
    folder: Path,
) -> int:
    """Write every publication that is not exported yet as OpenLineage run events, and return how many were.

    Each has a file with a START and a COMPLETE event, one per line: `<dataset>/<version>.json`, or
    `<dataset>/<UUID>.json` for a delivery to a database.
    """
    written = 0
    for contract in contracts.values():
        for name, publication in _to_export(lake, events, contract, landing):
            file = folder / contract.dataset / f"{name}.json"
            if file.exists():
                continue
            lines = run_events(publication(), contracts)
            write_whole(file, "".join(f"{line}\n" for line in lines).encode())
            written += 1
    return written


def _newest_reads(events: EventLog, contract: Contract) -> Sequence[Mapping[str, int]]:
    if isinstance(contract.write, Serve | Feed):
        newest = {each.partition: each for each in deliveries(events, contract.dataset)}
        return [each.inputs for each in newest.values()]
    return [entry.inputs for entry in events.publications(contract.dataset).values()]


def _to_export(
    lake: Lake, events: EventLog, contract: Contract, landing: str
) -> Iterator[tuple[str, Callable[[], PublishedVersion]]]:
    """List a dataset's publications with stable file names; the function builds the description only when called."""
    if isinstance(contract.write, Serve | Feed):
        for each in deliveries(events, contract.dataset):
            name = str(uuid.uuid5(uuid.NAMESPACE_URL, each.batch_id))
            yield name, partial(_delivered, contract.dataset, each)
    else:
        for found in publications(lake, contract.dataset):
            yield f"{found.commit.version:020d}", partial(_committed, lake, landing, found)


def _delivered(dataset: str, each: Served) -> PublishedVersion:
    return PublishedVersion(
        dataset=dataset,
        version=each.batch_id,
        run_id=each.run_id,
        job=each.job,
        # The database records only one time per delivery.
        started_at=each.served_at,
        ended_at=each.served_at,
        inputs=each.inputs,
        rows=each.rows,
    )


def _committed(lake: Lake, landing: str, found: Published) -> PublishedVersion:
    commit, columns = found.commit, sources(lake, landing, found.commit)
    read = {source.dataset for origins in columns.values() for source in origins} | _streamed_from(commit)
    return PublishedVersion(
        dataset=commit.dataset,
        version=str(commit.version),
        run_id=commit.info["run"]["run_id"],
        job=commit.info["run"]["job"],
        started_at=datetime.fromtimestamp(float(commit.info["started_at"]), tz=timezone.utc),
        ended_at=found.committed_at,
        inputs={**dict.fromkeys(read), **commit.info["inputs"]},
        rows=commit.rows_out,
        bytes=int(commit.info["bytes"]),
        columns=columns,
    )


def _landed(lake: Lake, landing: str, dataset: str) -> Iterable[str]:
    newest = next(publications(lake, dataset), None)
    if newest is None:
        return ()
    found = sources(lake, landing, newest.commit).values()
    outside = {source.dataset for columns in found for source in columns if source.dataset.startswith("landing.")}
    return outside | _streamed_from(newest.commit)


def _streamed_from(commit: Commit) -> set[str]:
    # Known even where no plan was recorded.
    source = commit.info.get("appended", {}).get("notes", {}).get(READ)
    return set() if source is None else {source}


def run_events(publication: PublishedVersion, contracts: Mapping[str, Contract]) -> Sequence[str]:
    """Build the START and the COMPLETE event that OpenLineage requires for a run, as JSON texts."""
    inputs = [
        {
            "namespace": NAMESPACE,
            "name": dataset,
            "facets": {**_described(contracts.get(dataset)), **({} if version is None else _version(str(version)))},
        }
        for dataset, version in sorted(publication.inputs.items())
    ]
    size = {} if publication.bytes is None else {"size": publication.bytes}
    output = {
        "namespace": NAMESPACE,
        "name": publication.dataset,
        "facets": {
            **_described(contracts.get(publication.dataset)),
            **_version(publication.version),
            **_column_lineage(publication.columns),
        },
        "outputFacets": {
            "outputStatistics": _facet("1-0-0", "OutputStatisticsOutputDatasetFacet", rowCount=publication.rows, **size)
        },
    }
    common = {
        "producer": PRODUCER,
        "schemaURL": RUN_EVENT,
        "run": {
            "runId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{NAMESPACE}/{publication.dataset}@{publication.version}")),
            "facets": _parent(publication),
        },
        "job": {"namespace": NAMESPACE, "name": publication.dataset, "facets": {}},
    }
    return [
        json.dumps({**common, "eventType": kind, "eventTime": _time(at), "inputs": inputs, "outputs": outputs})
        for kind, at, outputs in (("START", publication.started_at, []), ("COMPLETE", publication.ended_at, [output]))
    ]


def _parent(publication: PublishedVersion) -> dict[str, Any]:
    if publication.job is None:
        return {}
    run, job = {"runId": _uuid(publication.run_id)}, {"namespace": NAMESPACE, "name": publication.job}
    return {"parent": _facet("1-0-1", "ParentRunFacet", run=run, job=job)}


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


def _version(version: str) -> dict[str, Any]:
    return {"version": _facet("1-0-0", "DatasetVersionDatasetFacet", datasetVersion=version)}


def _column_lineage(columns: Mapping[str, Sequence[ColumnSource]]) -> dict[str, Any]:
    fields = {
        column: {"inputFields": [{"namespace": NAMESPACE, "name": one.dataset, "field": one.column} for one in found]}
        for column, found in columns.items()
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


def _time(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
