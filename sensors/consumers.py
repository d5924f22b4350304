"""Calls the jobs of other teams when the data they wait for is there (Isolated Sequencer).

They are started and found through the GraphQL interface of Dagster's web server; :mod:`analytics` knows nothing of it.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg

from blogdata.evidence.events import EventLog
from blogdata.lake.commit import Entry
from blogdata.orchestration.completeness import lacking_hours
from blogdata.orchestration.lake_resource import DeploymentResource, LakeResource
from blogdata.patterns.data_flow import isolated_sequencer
from blogdata.patterns.data_flow.isolated_sequencer import Call, ConsumerFault, ConsumerUnreachable
from blogdata.planning import clock
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, start_of
from blogdata.services import secrets
from blogdata.services.dagster_home import UI_TOKEN, ui_address
from quality.contracts import CONTRACTS
from sensors.run_requests import EVERYTHING

CAUSE = "blogdata/cause"
"""Tag of a consumer's run: what it was started for."""
_REPOSITORY = "__repository__"
_SECONDS = 20.0
_RUNS = "query($f: RunsFilter) { runsOrError(filter: $f, limit: 1) { ... on Runs { results { runId } } } }"
_LAUNCH = (
    "mutation($p: ExecutionParams!) { launchRun(executionParams: $p) { __typename ... on LaunchRunSuccess { run "
    "{ runId } } ... on PipelineNotFoundError { message } ... on PythonError { message } ... on UnauthorizedError "
    "{ message } } }"
)


@dataclass(frozen=True, kw_only=True)
class DagsterConsumer:
    """The consumers that a Dagster web server serves."""

    url: str
    token: str = field(repr=False)

    def run_for(self, call: Call, period: str) -> str | None:
        tags = [{"key": CAUSE, "value": call.cause(period)}]
        found = self._ask(call, _RUNS, f={"pipelineName": call.job, "tags": tags})["runsOrError"]
        results = found.get("results")
        if results is None:
            raise _refused(call, f"its runs cannot be listed: {found}")
        return str(results[0]["runId"]) if results else None

    def start(self, call: Call, period: str) -> str:
        tags = {"dagster/partition": period, CAUSE: call.cause(period)}
        selector = {"repositoryLocationName": call.location, "repositoryName": _REPOSITORY, "jobName": call.job}
        metadata = {"tags": [{"key": key, "value": value} for key, value in tags.items()]}
        parameters = {"selector": selector, "runConfigData": {}, "executionMetadata": metadata}
        launched = self._ask(call, _LAUNCH, p=parameters)["launchRun"]
        if launched["__typename"] == "PipelineNotFoundError":
            raise _refused(call, f"there is no job {call.job}")
        if launched["__typename"] != "LaunchRunSuccess":
            raise _refused(call, f"{launched['__typename']}: {launched.get('message', 'no message')}")
        return str(launched["run"]["runId"])

    def _ask(self, call: Call, query: str, **variables: Any) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(f"{self.url}/graphql", data=body, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code < 500:
                raise _refused(call, f"the web server answers {error.code}") from error
            raise _unreachable(call, self.url, error) from error
        except (OSError, ValueError) as error:
            raise _unreachable(call, self.url, error) from error
        if "errors" in found:
            raise _refused(call, "; ".join(str(one.get("message")) for one in found["errors"]))
        return found["data"]


def _refused(call: Call, what: str) -> ConsumerFault:
    return ConsumerFault(what=what, where=call.name, next_step=f"ask {call.team}, or mend the call")


def _unreachable(call: Call, url: str, error: Exception) -> ConsumerUnreachable:
    return ConsumerUnreachable(
        what=f"nothing answers: {error}", where=f"{call.name} at {url}", next_step="it is called again"
    )


CALLS = (
    Call(
        team="team:analytics",
        dataset="gold.page_stats",
        grain=Grain.DAY,
        period=Grain.WEEK,
        location="analytics",
        job="newsletter",
    ),
)


def consumers_called(status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED) -> dg.SensorDefinition:
    return dg.sensor(
        name="consumers",
        minimum_interval_seconds=60,
        default_status=status,
        description="Starts the jobs of other teams, by their interface, when the data they wait for is there",
        tags={"pattern/isolated-sequencer": "", **EVERYTHING},
    )(_tick)


def _tick(context: dg.SensorEvaluationContext, lake: LakeResource, deployment: DeploymentResource) -> dg.SensorResult:
    """Call once per period; a consumer that fails is called again and stops nothing else."""
    before = json.loads(context.cursor) if context.cursor else {"called": {}, "faults": {}}
    called: dict[str, list[str]] = before["called"]
    faults: dict[str, str] = {}
    url = ui_address(Path(context.instance.root_directory))
    said = []
    for call in CALLS:
        known = called.get(call.name, [])
        published = lake.events.publications(call.dataset)
        there = published.keys() - _awaited(lake.events, CONTRACTS[call.dataset], published)
        periods = isolated_sequencer.due(call, there, known)
        if periods and url is None:
            said.append(f"{call.name} waits: no UI of this deployment is served")
        if not periods or url is None:
            continue
        consumer = DagsterConsumer(url=url, token=secrets.read(deployment.settings(), UI_TOKEN).reveal())
        result = isolated_sequencer.call(consumer, call, periods)
        called[call.name] = sorted({*known, *result.runs})
        said += [f"{call.name} {period}: run {run}" for period, run in result.runs.items()]
        for period, fault in result.faults.items():
            said.append(f"{call.name} {period}: {fault.what}")
            faults[f"{call.name} {period}"] = fault.what
            # The same fault is no news each minute.
            if before["faults"].get(f"{call.name} {period}") != fault.what:
                context.log.warning(f"{period}: {fault}")
    cursor = json.dumps({"called": called, "faults": faults}, sort_keys=True)
    reason = "; ".join(said) or "nothing is there that a consumer was not called for"
    return dg.SensorResult(skip_reason=reason, cursor=cursor)


def _awaited(events: EventLog, contract: Contract, published: Mapping[str, Entry]) -> set[str]:
    """Find the published partitions that lack hours and are not overdue: a consumer is called once, so it waits."""
    if contract.parts is None or contract.partitioning is None:
        return set()
    grain = contract.partitioning.grain
    patience = grain.length + (contract.promise or timedelta(0))
    return {key for key in lacking_hours(events, contract, published) if clock.now() < start_of(key, grain) + patience}
