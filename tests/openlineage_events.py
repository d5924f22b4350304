"""The requirements of the OpenLineage specification for a run event and its facets."""

from __future__ import annotations

import uuid
from typing import Any

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
