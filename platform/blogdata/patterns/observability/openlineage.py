"""Publications as OpenLineage run events, with schema, owner, version and column lineage.

Source: OpenLineage specification 2-0-2 and its facets.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from blogdata.patterns.observability.fine_grained_tracker import ColumnSource
from blogdata.publish.contract import Contract

NAMESPACE = "blogdata"
"""Namespace of the jobs and datasets in a catalog."""
PRODUCER = "urn:blogdata:dataset-tracker"
SPEC = "https://openlineage.io/spec"
RUN_EVENT = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"


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
    start = {"eventType": "START", "eventTime": _time(publication.started_at), "inputs": inputs, "outputs": []}
    complete = {
        "eventType": "COMPLETE",
        "eventTime": _time(publication.ended_at),
        "inputs": inputs,
        "outputs": [output],
    }
    return [json.dumps({**common, **event}) for event in (start, complete)]


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
        column: {
            "inputFields": [
                {"namespace": NAMESPACE, "name": source.dataset, "field": source.column} for source in found
            ]
        }
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
