"""What a result was computed from, as OpenLineage run events beside it: for catalogs, and for the platform's lineage.

Source: OpenLineage specification 2-0-2 and its facets.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from analytics.gold import write_whole

FOLDER = "openlineage"
"""Folder of the events, below the team's own."""
NAMESPACE = "blogdata"
"""Namespace of the datasets, the same as the platform's: so its gold tables are the ones that are read here."""
PRODUCER = "urn:blogdata:analytics"
_SPEC = "https://openlineage.io/spec"


@dataclass(frozen=True, kw_only=True)
class Result:
    """A dataset that was written, and what was read for it."""

    dataset: str
    version: str
    owner: str
    description: str
    read: dict[str, int]
    rows: int
    run_id: str
    job: str
    started_at: datetime


def leave(own: Path, result: Result) -> Path:
    """Write the START and the COMPLETE event of a result to `openlineage/<dataset>/<version>.json`, one per line."""
    file = own / FOLDER / result.dataset / f"{result.version}.json"
    write_whole(file, "".join(f"{json.dumps(event)}\n" for event in _events(result)))
    return file


def _events(result: Result) -> list[dict[str, Any]]:
    inputs = [_dataset(name, _version(str(version))) for name, version in sorted(result.read.items())]
    facets = {
        "ownership": _facet("1-0-0", "OwnershipDatasetFacet", owners=[{"name": result.owner, "type": "OWNER"}]),
        "documentation": _facet("1-0-0", "DocumentationDatasetFacet", description=result.description),
        **_version(result.version),
    }
    written = {"outputStatistics": _facet("1-0-0", "OutputStatisticsOutputDatasetFacet", rowCount=result.rows)}
    output = {**_dataset(result.dataset, facets), "outputFacets": written}
    identity = f"{NAMESPACE}/{result.dataset}@{result.version}"
    run, job = {"runId": result.run_id}, {"namespace": NAMESPACE, "name": result.job}
    common = {
        "producer": PRODUCER,
        "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {
            "runId": str(uuid.uuid5(uuid.NAMESPACE_URL, identity)),
            "facets": {"parent": _facet("1-0-1", "ParentRunFacet", run=run, job=job)},
        },
        "job": {"namespace": NAMESPACE, "name": result.dataset, "facets": {}},
        "inputs": inputs,
    }
    now = datetime.now(timezone.utc)
    return [
        {**common, "eventType": "START", "eventTime": _time(result.started_at), "outputs": []},
        {**common, "eventType": "COMPLETE", "eventTime": _time(now), "outputs": [output]},
    ]


def _dataset(name: str, facets: dict[str, Any]) -> dict[str, Any]:
    return {"namespace": NAMESPACE, "name": name, "facets": facets}


def _version(version: str) -> dict[str, Any]:
    return {"version": _facet("1-0-0", "DatasetVersionDatasetFacet", datasetVersion=version)}


def _facet(version: str, name: str, **content: Any) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": f"{_SPEC}/facets/{version}/{name}.json#/$defs/{name}", **content}


def _time(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
