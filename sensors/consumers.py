"""Calls the jobs of other teams when the data they wait for is there (Isolated Sequencer)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import dagster as dg

from blogdata.evidence.events import EventLog
from blogdata.lake.commit import Entry
from blogdata.orchestration.completeness import partial
from blogdata.orchestration.dagster_consumer import DagsterConsumer
from blogdata.orchestration.deployment_resource import DeploymentResource
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.patterns.data_flow import isolated_sequencer
from blogdata.planning import clock
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import start_of
from blogdata.services import secrets
from blogdata.services.dagster_home import UI_TOKEN, ui_address
from quality.consumer_calls import CALLS
from quality.contracts import CONTRACTS
from sensors.run_requests import EVERYTHING


def consumers_called(status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED) -> dg.SensorDefinition:
    """Build the sensor."""
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
    grain, found = contract.partitioning.grain, partial(events, contract, published)
    patience = contract.promise or timedelta(0)
    overdue = {key for key in found.ended if clock.now() >= start_of(key, grain) + grain.length + patience}
    return {*found.running, *found.ended} - overdue
