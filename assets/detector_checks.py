"""Asset checks of the detectors of flow, lag and SLA: whether data comes, is read, and is published in time.

Nothing has to run for them to change, so the sensor `detectors` evaluates them every few minutes, and a person can
execute them at any time. The check `skew` belongs to a publication, whose step reports it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

import dagster as dg

from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.names import asset_key
from blogdata.patterns.observability.reading import FLOW, LAG, SLA, UNKNOWN, Reading
from blogdata.planning import detectors
from blogdata.planning.observed import Observed
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.contract import Contract
from quality.contracts import EVERY, GRAPH
from quality.contracts.streams import streamed_inputs

TIMED: Mapping[str, str] = {
    FLOW: "New data has come about as often as before (warning)",
    LAG: "What is there to be read has been read within the promised time (warning)",
    SLA: "Partitions due since yesterday were published within the promise, by jobs of usual duration (warning)",
}
"""The detectors whose checks depend on the time, each with the description of its check."""


def deployment_of(access: LakeResource, now: datetime) -> Observed:
    """Take a snapshot of the deployment for its detectors."""
    streams = streamed_inputs(access.checkpoints_path)
    return Observed(graph=GRAPH, look=Snapshot(access.landing_zone, access.events), now=now, streams=streams)


def evaluation_of(reading: Reading) -> dg.AssetCheckEvaluation:
    """Build the evaluation of a detector's check from its reading."""
    return dg.AssetCheckEvaluation(
        asset_key=asset_key(reading.dataset),
        check_name=reading.detector,
        passed=not reading.stands,
        severity=dg.AssetCheckSeverity.WARN,
        description=_description(reading),
        metadata={
            "verdict": reading.verdict,
            "value": reading.value,
            "bound": reading.bound,
            **dict(reading.figures),
            **({"partitions": list(reading.partitions[:100])} if reading.partitions else {}),
        },
    )


def _description(reading: Reading) -> str | None:
    if reading.verdict == UNKNOWN:
        return f"not judged: {reading.what}"
    return f"{reading.what}; {reading.remedy}" if reading.stands else None


def _check(contract: Contract, detector: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=asset_key(contract.dataset),
        name=detector,
        description=TIMED[detector],
        required_resource_keys={"lake"},
    )
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        access: LakeResource = context.resources.lake
        reading = detectors.READERS[detector](deployment_of(access, datetime.now(timezone.utc)), contract)
        detectors.record(access.events, [reading])
        made = evaluation_of(reading)
        return dg.AssetCheckResult(
            passed=made.passed, severity=made.severity, description=made.description, metadata=made.metadata
        )

    return check


CHECKS: Sequence[dg.AssetChecksDefinition] = tuple(
    _check(contract, detector)
    for contract in EVERY.values()
    for detector in TIMED
    if getattr(contract.watch, detector) is not None
)
