"""What the buttons of Dagster's pages send: the queries and mutations of its JavaScript, in its order."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ui.served import Served

BASE_JOB = "__ASSET_JOB"
ENDED = ("SUCCESS", "FAILURE", "CANCELED")
Key = tuple[str, ...]
CheckKey = tuple[Key, str]

NODES = """query LaunchAssetLoaderQuery($assetKeys: [AssetKeyInput!]) {
  assetNodes(assetKeys: $assetKeys) {
    assetKey { path } groupName jobNames isExecutable isObservable dependencyKeys { path } partitionKeys
    partitionDefinition { name type description } repository { location { name } }
    targetingInstigators { ... on Sensor { name } ... on Schedule { name } }
    assetChecksOrError { ... on AssetChecks { checks { name canExecuteIndividually jobNames } } }
  }
}"""
REQUIRED = """query LaunchAssetLoaderQuery($assetKeys: [AssetKeyInput!]!) {
  assetNodeAdditionalRequiredKeys(assetKeys: $assetKeys) { path }
  assetNodeDefinitionCollisions(assetKeys: $assetKeys) { assetKey { path } }
}"""
PREVIEW = """query LaunchpadRootQuery($job: String!, $location: String!, $assets: [AssetKeyInput!]) {
  pipelineOrError(params: {pipelineName: $job, repositoryName: "__repository__", repositoryLocationName: $location,
                           assetSelection: $assets}) {
    __typename ... on PipelineNotFoundError { message } ... on InvalidSubsetError { message }
    ... on PythonError { message }
  }
}"""
TAGS = """query ConfigPartitionForAssetJobQuery($location: String!, $partition: String!, $assets: [AssetKeyInput!]!) {
  pipelineOrError(params: {pipelineName: "__ASSET_JOB", repositoryName: "__repository__",
                           repositoryLocationName: $location}) {
    ... on Pipeline { partition(partitionName: $partition, selectedAssetKeys: $assets) {
      runConfigOrError { ... on PartitionRunConfig { yaml } ... on PythonError { message } }
      tagsOrError { ... on PartitionTags { results { key value } } ... on PythonError { message } }
    } }
  }
}"""
LAUNCH = """mutation LaunchPipelineExecution($p: ExecutionParams!) {
  launchPipelineExecution(executionParams: $p) {
    __typename ... on LaunchRunSuccess { run { id } } ... on PythonError { message }
    ... on InvalidSubsetError { message } ... on PipelineNotFoundError { message }
  }
}"""
RUN = """query($id: ID!) { runOrError(runId: $id) { ... on Run { status eventConnection { events {
  __typename
  ... on MaterializationEvent { assetKey { path } partition }
  ... on AssetCheckEvaluationEvent { evaluation { assetKey { path } checkName success severity description } }
  ... on ExecutionStepFailureEvent { error { message cause { message } } }
  ... on RunFailureEvent { error { message } }
} } } } }"""
BACKFILL = """mutation LaunchPartitionBackfill($p: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $p) {
    __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
  }
}"""
RUNS_OF = "query($filter: RunsFilter!) { runsOrError(filter: $filter) { ... on Runs { results { runId } } } }"
CANCEL = "mutation($id: String!) { cancelPartitionBackfill(backfillId: $id) { __typename } }"


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run did, by its events: assets with their partitions, and checks, of which a warning is green."""

    status: str
    materialized: frozenset[tuple[Key, str | None]]
    checks: Mapping[CheckKey, bool]
    errors: tuple[str, ...]


class Buttons:
    """The pages of a served deployment, with all its code locations."""

    def __init__(self, served: Served) -> None:
        self._served = served

    @cached_property
    def nodes(self) -> Mapping[Key, Mapping[str, Any]]:
        return {tuple(node["assetKey"]["path"]): node for node in self._served.ask(NODES)["assetNodes"]}

    def location(self, key: Key) -> str:
        return str(self.nodes[key]["repository"]["location"]["name"])

    def checks(self, keys: Collection[Key], *, alone: bool = False) -> list[CheckKey]:
        """List the checks that a page selects with its assets; `alone`: those that *Execute* is offered for."""
        return [
            (key, check["name"])
            for key in keys
            for check in self.nodes[key]["assetChecksOrError"]["checks"]
            if not alone or check["canExecuteIndividually"] == "CAN_EXECUTE"
        ]

    def with_required(self, keys: Collection[Key]) -> list[Key]:
        """Add the assets of steps that cannot be split, as the page does once a person has confirmed it."""
        found = self._served.ask(REQUIRED, assetKeys=_inputs(keys))
        assert found["assetNodeDefinitionCollisions"] == []
        return [*keys, *(tuple(key["path"]) for key in found["assetNodeAdditionalRequiredKeys"])]

    def preview(self, location: str, keys: Collection[Key]) -> str | None:
        """Load the job that the dialog of *Materialize* and *Materialize all* loads; return its error."""
        variables = {"job": BASE_JOB, "location": location, "assets": _inputs(keys)}
        found = self._served.ask(PREVIEW, **variables)["pipelineOrError"]
        return None if found["__typename"] == "Pipeline" else str(found["message"])

    def materialize(self, keys: Sequence[Key], partition: str | None = None) -> str:
        """Press *Materialize*, choose a partition, and launch one run; return its identifier."""
        keys = self.with_required(keys)
        location, tags = self.location(keys[0]), []
        if partition is not None:
            variables = {"location": location, "partition": partition, "assets": _inputs(keys)}
            tags = self._served.ask(TAGS, **variables)["pipelineOrError"]["partition"]["tagsOrError"]["results"]
        return self._launch(location, keys, self.checks(keys), tags)

    def execute(self, location: str, checks: Sequence[CheckKey]) -> str:
        return self._launch(location, (), checks, ())

    def backfill(self, keys: Collection[Key], partitions: Sequence[str]) -> str:
        """Press *Materialize*, choose several partitions, and launch a backfill; return its identifier."""
        params = {"assetSelection": _inputs(keys), "partitionNames": list(partitions)}
        launched = self._served.ask(BACKFILL, p=params)["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        return str(launched["backfillId"])

    def materialize_all(self, keys: Collection[Key]) -> str | None:
        """Press *Materialize all* and launch all partitions; cancel it before the daemon's turn, return its error."""
        params = {"assetSelection": _inputs(self.with_required(keys)), "allPartitions": True}
        launched = self._served.ask(BACKFILL, p=params)["launchPartitionBackfill"]
        if launched["__typename"] != "LaunchBackfillSuccess":
            return str(launched["message"])
        canceled = self._served.ask(CANCEL, id=launched["backfillId"])["cancelPartitionBackfill"]
        assert canceled["__typename"] == "CancelBackfillSuccess", canceled
        return None

    def runs_of(self, backfill: str, seconds: float = 120) -> list[str]:
        """List the runs of a backfill, once the daemon has had its turn."""
        deadline = time.monotonic() + seconds
        asked = {"tags": [{"key": "dagster/backfill", "value": backfill}]}
        while not (found := self._served.ask(RUNS_OF, filter=asked)["runsOrError"]["results"]):
            assert time.monotonic() < deadline, f"no run of the backfill {backfill}"
            time.sleep(1)
        return [str(run["runId"]) for run in found]

    def ended(self, run_id: str, seconds: float = 600) -> Run:
        deadline = time.monotonic() + seconds
        while (found := self._served.ask(RUN, id=run_id)["runOrError"])["status"] not in ENDED:
            assert time.monotonic() < deadline, (run_id, found["status"])
            time.sleep(0.5)
        events: list[dict[str, Any]] = found["eventConnection"]["events"]
        evaluated = [event["evaluation"] for event in events if event["__typename"] == "AssetCheckEvaluationEvent"]
        made = [event for event in events if event["__typename"] == "MaterializationEvent"]
        errors = [event["error"] for event in events if event.get("error")]
        return Run(
            status=found["status"],
            materialized=frozenset((tuple(event["assetKey"]["path"]), event["partition"]) for event in made),
            checks={
                (tuple(check["assetKey"]["path"]), check["checkName"]): check["success"] or check["severity"] == "WARN"
                for check in evaluated
            },
            errors=tuple(f"{error['message']} {(error.get('cause') or {}).get('message', '')}" for error in errors),
        )

    def _launch(
        self, location: str, keys: Collection[Key], checks: Collection[CheckKey], tags: Sequence[Mapping[str, str]]
    ) -> str:
        selected = [{"assetKey": {"path": key}, "name": name} for key, name in checks]
        selector = {
            "repositoryLocationName": location,
            "repositoryName": "__repository__",
            "pipelineName": BASE_JOB,
            "assetSelection": _inputs(keys),
            "assetCheckSelection": selected,
        }
        metadata = {"tags": [*tags]}
        params = {"mode": "default", "executionMetadata": metadata, "runConfigData": "{}", "selector": selector}
        launched = self._served.ask(LAUNCH, p=params)["launchPipelineExecution"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["id"])


def _inputs(keys: Collection[Key]) -> list[dict[str, Any]]:
    return [{"path": key} for key in keys]
