"""Asset checks that depend on the time: due partitions have landed; data comes, is read, and is published in time.

Nothing has to run for them to change, so the sensor `detectors` reports their evaluations, and a person can
execute them at any time.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import starmap
from typing import Any

import dagster as dg

from assets.stream_inputs import streamed_inputs
from blogdata.contract.contract import Contract
from blogdata.planning.arrivals import Arrivals
from blogdata.planning.reach import landed_input
from blogdata.planning.snapshot import Observed, Snapshot
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.names import asset_key
from blogdata.watch import detectors
from blogdata.watch.reading import FLOW, LAG, QUIET, SKEW, SLA, UNKNOWN, Reading
from quality.contracts import EVERY, GRAPH, LANDED

OVERDUE = "overdue"
CHECKED: Mapping[str, str] = {
    FLOW: "New data comes about as often as before (warning)",
    SKEW: "The newest partitions have about as many rows as comparable ones, and their keys are as even (warning)",
    LAG: "The reader's lag is within its limit (warning)",
    SLA: "Partitions due since yesterday were published within the promise, by jobs of usual duration (warning)",
}
"""The detectors, each with the description of its check."""


def deployment_of(access: LakeResource, now: datetime) -> Observed:
    streams = streamed_inputs(access.checkpoints_path)
    return Observed(graph=GRAPH, look=Snapshot(access.landing_zone, access.events), now=now, streams=streams)


def evaluation_of(reading: Reading) -> dg.AssetCheckEvaluation:
    description = f"{reading.what}; {reading.remedy}" if reading.stands else None
    metadata = {"verdict": reading.verdict, "value": reading.value, "bound": reading.bound, **dict(reading.figures)}
    return _evaluation(
        dg.AssetCheckKey(asset_key(reading.dataset), reading.detector),
        passed=not reading.stands,
        description=f"not judged: {reading.what}" if reading.verdict == UNKNOWN else description,
        metadata={**metadata, **({"partitions": list(reading.partitions[:100])} if reading.partitions else {})},
    )


def _evaluation(
    key: dg.AssetCheckKey, *, passed: bool, description: str | None, metadata: Mapping[str, Any]
) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=passed,
        severity=dg.AssetCheckSeverity.WARN,
        description=description,
        metadata=metadata,
    )


def overdue_check_key(contract: Contract) -> dg.AssetCheckKey:
    """Return the key of the check on a dataset's landed table: of an external asset the newest result is shown."""
    landed = landed_input(contract)
    assert landed is not None, f"{contract.dataset} reads nothing that lands"
    return dg.AssetCheckKey(dg.AssetKey(["landing", landed.table]), OVERDUE)


def overdue_evaluation(access: LakeResource, contract: Contract, now: datetime) -> dg.AssetCheckEvaluation:
    late = Arrivals.of(contract, access.landing_zone).overdue(access.events, now)
    waits = {why: list(keys) for why, keys in late.without.items()}
    metadata = {"verdict": late.warning or QUIET, OVERDUE: sum(map(len, late.without.values())), **waits}
    key, passed = overdue_check_key(contract), late.warning is None
    return _evaluation(key, passed=passed, description=late.warning, metadata=metadata)


def _check(
    key: dg.AssetCheckKey, description: str, evaluate: Callable[[LakeResource, datetime], dg.AssetCheckEvaluation]
) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=key.asset_key, name=key.name, description=description, required_resource_keys={"lake"})
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        made = evaluate(context.resources.lake, datetime.now(timezone.utc))
        return dg.AssetCheckResult(
            passed=made.passed, severity=made.severity, description=made.description, metadata=made.metadata
        )

    return check


def _of_arrivals(contract: Contract) -> dg.AssetChecksDefinition:
    due = f"What is due {contract.freshness_hours:g} h after its end has come, and is complete (warning)"
    return _check(overdue_check_key(contract), due, lambda access, now: overdue_evaluation(access, contract, now))


def _of_detector(contract: Contract, detector: str) -> dg.AssetChecksDefinition:
    def evaluate(access: LakeResource, now: datetime) -> dg.AssetCheckEvaluation:
        return evaluation_of(detectors.READERS[detector](deployment_of(access, now), contract))

    return _check(dg.AssetCheckKey(asset_key(contract.dataset), detector), CHECKED[detector], evaluate)


CHECKS: Sequence[dg.AssetChecksDefinition] = (
    *map(_of_arrivals, LANDED.values()),
    *starmap(_of_detector, detectors.watched(EVERY.values())),
)
