"""Calls the job of another team when the data it waits for is there (Isolated Sequencer).

It is started through the GraphQL interface of Dagster's web server; :mod:`analytics` knows nothing of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import dagster as dg

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain, start_of
from blogdata.contract.publication import Entry
from blogdata.operate import secrets
from blogdata.operate.dagster_home import UI_TOKEN, ui_address
from blogdata.patterns.data_flow import isolated_sequencer
from blogdata.planning import clock
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from blogdata.watch import detectors
from quality.contracts import CONTRACTS
from sensors.run_requests import EVERYTHING

CAUSE = "blogdata/cause"
"""Tag of a consumer's run: what it was started for."""
TEAM, DATASET = "team:analytics", "gold.page_stats"
LOCATION, JOB = "analytics", "newsletter"
NAME = f"{LOCATION}/{JOB}"
_REPOSITORY = "__repository__"
_SECONDS = 20


def start(url: str, token: str, period: str) -> str:
    """Start the job for a period; return the run.

    Raises:
        DagsterGraphQLClientError: Nothing answers, it has no such job, or it refuses the call.
    """
    from dagster_graphql import DagsterGraphQLClient

    headers = {"authorization": f"Bearer {token}"}
    client = DagsterGraphQLClient(url.removeprefix("http://"), timeout=_SECONDS, headers=headers)
    tags = {"dagster/partition": period, CAUSE: f"{DATASET} {period}"}
    return client.submit_job_execution(JOB, repository_location_name=LOCATION, repository_name=_REPOSITORY, tags=tags)


def consumers_called(status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED) -> dg.SensorDefinition:
    return dg.sensor(
        name="consumers",
        minimum_interval_seconds=60,
        default_status=status,
        description="Starts the jobs of other teams, by their interface, when the data they wait for is there",
        tags={"pattern/isolated-sequencer": "", **EVERYTHING},
    )(_tick)


def _tick(context: dg.SensorEvaluationContext, lake: LakeResource, deployment: DeploymentResource) -> dg.SensorResult:
    """Call once per period; a call that fails is made again at the next tick, and stops nothing else."""
    from dagster_graphql import DagsterGraphQLClientError

    called: list[str] = (json.loads(context.cursor) if context.cursor else {}).get("called", {}).get(NAME, [])
    published = lake.events.publications(DATASET)
    days = published.keys() - _awaited(CONTRACTS[DATASET], published)
    url = ui_address(Path(context.instance.root_directory))
    reasons = []
    for period in isolated_sequencer.due(days, called, grain=Grain.DAY, period=Grain.WEEK):
        if url is None:
            reasons.append(f"{NAME} waits: no UI of this deployment is served")
            break
        runs = dg.RunsFilter(job_name=JOB, tags={CAUSE: f"{DATASET} {period}"})
        known = context.instance.get_runs(runs, limit=1)
        try:
            token = secrets.read(deployment.settings(), UI_TOKEN).reveal()
            run = known[0].run_id if known else start(url, token, period)
        except DagsterGraphQLClientError as error:
            fault = str(error.__cause__ or error).partition("\n")[0]
            context.log.warning(f"{NAME} {period} was not started: {fault}; ask {TEAM}, or wait for the next call")
            reasons.append(f"{NAME} {period}: {fault}")
            break
        called = sorted({*called, period})
        reasons.append(f"{NAME} {period}: run {run}")
    cursor = json.dumps({"called": {NAME: called}}, sort_keys=True)
    reason = "; ".join(reasons) or "every published period was called for"
    return dg.SensorResult(skip_reason=reason, cursor=cursor)


def _awaited(contract: Contract, published: Mapping[str, Entry]) -> set[str]:
    """Find the published days that lack hours and are not overdue: a consumer is called once, so it waits."""
    patience = Grain.DAY.length + (contract.promise or timedelta(0))
    lacking = (day for day, entry in published.items() if not detectors.is_complete(contract, entry))
    return {day for day in lacking if clock.now() < start_of(day, Grain.DAY) + patience}
