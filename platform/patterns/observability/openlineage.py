"""Publications in the words of OpenLineage: run events with schema, owner, version and column lineage.

Source: OpenLineage specification 2-0-2 and its facets.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from patterns.core.commit import Commit
from patterns.core.contract import Contract
from patterns.observability.fine_grained_tracker import ColumnSource

PRODUCER = "urn:blogdata:dataset-tracker"
SPEC = "https://openlineage.io/spec"
RUN_EVENT = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"


def run_events(
    commit: Commit,
    committed_at: datetime,
    contracts: Mapping[str, Contract],
    lineage: Mapping[str, Sequence[ColumnSource]],
    namespace: str,
) -> Sequence[str]:
    """Describe one publication as the two events its run must have.

    Args:
        commit: The publication.
        committed_at: When it was committed, UTC.
        contracts: The datasets, by name.
        lineage: Column of the dataset to the columns it was computed from.
        namespace: Namespace of the jobs and datasets.

    Returns:
        A START and a COMPLETE event as JSON texts.
    """
    run = commit.info["run"]
    read = {source.dataset for found in lineage.values() for source in found} - {commit.dataset}
    inputs = [
        {
            "namespace": namespace,
            "name": dataset,
            "facets": {
                **_described(contracts.get(dataset)),
                **_version(commit.info["inputs"].get(dataset)),
            },
        }
        for dataset in sorted(read | set(commit.info["inputs"]))
    ]
    contract = contracts.get(commit.dataset)
    output = {
        "namespace": namespace,
        "name": commit.dataset,
        "facets": {
            **_described(contract),
            **_version(commit.version),
            "columnLineage": _facet("1-0-1", "ColumnLineageDatasetFacet", fields=_fields(lineage, namespace)),
        },
        "outputFacets": {
            "outputStatistics": _facet(
                "1-0-0",
                "OutputStatisticsOutputDatasetFacet",
                rowCount=commit.rows_out,
                size=int(commit.info["bytes"]),
            )
        },
    }
    common = {
        "producer": PRODUCER,
        "schemaURL": RUN_EVENT,
        "run": {
            "runId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{namespace}/{commit.dataset}@{commit.version}")),
            "facets": {
                "parent": _facet(
                    "1-0-1",
                    "ParentRunFacet",
                    run={"runId": _uuid(run["run_id"])},
                    job={"namespace": namespace, "name": run["job"]},
                )
            },
        },
        "job": {"namespace": namespace, "name": commit.dataset, "facets": {}},
    }
    started = datetime.fromtimestamp(float(commit.info["started_at"]), tz=timezone.utc)
    start = {"eventType": "START", "eventTime": _time(started), "inputs": inputs, "outputs": []}
    complete = {
        "eventType": "COMPLETE",
        "eventTime": _time(committed_at),
        "inputs": inputs,
        "outputs": [output],
    }
    return [json.dumps({**common, **event}) for event in (start, complete)]


def _described(contract: Contract | None) -> dict[str, Any]:
    if contract is None:
        return {}
    columns = [{"name": c.name, "type": c.type, "description": c.description} for c in contract.columns]
    owner = {"name": contract.owner, "type": "OWNER"}
    return {
        "schema": _facet("1-0-0", "SchemaDatasetFacet", fields=columns),
        "ownership": _facet("1-0-0", "OwnershipDatasetFacet", owners=[owner]),
        "documentation": _facet("1-0-0", "DocumentationDatasetFacet", description=contract.description),
    }


def _version(version: int | None) -> dict[str, Any]:
    if version is None:
        return {}
    return {"version": _facet("1-0-0", "DatasetVersionDatasetFacet", datasetVersion=str(version))}


def _fields(lineage: Mapping[str, Sequence[ColumnSource]], namespace: str) -> dict[str, Any]:
    return {
        column: {
            "inputFields": [
                {"namespace": namespace, "name": source.dataset, "field": source.column} for source in found
            ]
        }
        for column, found in lineage.items()
    }


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
