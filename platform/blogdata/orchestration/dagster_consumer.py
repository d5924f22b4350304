"""Jobs of another team's code location, started and found through the GraphQL interface of Dagster's web server."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from blogdata.patterns.data_flow.isolated_sequencer import Call, ConsumerFault, ConsumerUnreachable

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
        """Find the run that was started for a period, by its tag."""
        tags = [{"key": CAUSE, "value": call.cause(period)}]
        found = self._ask(call, _RUNS, f={"pipelineName": call.job, "tags": tags})["runsOrError"]
        results = found.get("results")
        if results is None:
            raise _refused(call, f"its runs cannot be listed: {found}")
        return str(results[0]["runId"]) if results else None

    def start(self, call: Call, period: str) -> str:
        """Launch the job for the partition of a period."""
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
