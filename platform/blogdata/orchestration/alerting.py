"""Tells people what stands: findings become alerts, and what is due is sent, by one process at a time."""

from __future__ import annotations

from collections.abc import Sequence

from blogdata.alerts import sending
from blogdata.alerts.alert import Alert
from blogdata.alerts.sending import Round
from blogdata.evidence.events import EventLog
from blogdata.evidence.finding import Finding
from blogdata.lake.lake import Lake
from blogdata.orchestration import partner
from blogdata.patterns.ingestion.readiness_marker import LandingZone
from blogdata.planning import clock, findings
from blogdata.planning.graph import Graph
from blogdata.planning.observed import Observed, StreamedInput
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.contract import Contract
from blogdata.publish.writes import Feed
from blogdata.services import deployment_alerts
from blogdata.services.config import Settings
from blogdata.services.files import locked


def alert_of(finding: Finding) -> Alert:
    """Return a finding as the alert that people get; its remedy is rendered by this process."""
    about = f"{finding.dataset} {finding.partition}" if finding.partition else finding.dataset
    return Alert(
        identity=finding.identity,
        severity=finding.severity,
        owner=finding.owner,
        title=f"{about}: {finding.source}",
        text=finding.what,
        next_step=str(finding.remedy),
    )


def observed(
    settings: Settings, graph: Graph, streams: Sequence[StreamedInput], served: Sequence[Contract]
) -> Observed:
    """Take a snapshot of a deployment, from which findings are drawn.

    Args:
        settings: Settings of the deployment.
        graph: The lineage.
        streams: The streams that run beside it.
        served: Contracts of what is served outside the lake.
    """
    zone = LandingZone(folder=settings.landing, convention=settings.ready)
    seen = Snapshot(zone, EventLog(Lake(root=str(settings.lake))))
    box = partner.outbox(settings)
    return Observed(
        graph=graph,
        look=seen,
        now=clock.now(),
        streams=streams,
        feeds=[(contract, box) for contract in served if isinstance(contract.write, Feed)],
    )


def tell(
    settings: Settings,
    graph: Graph,
    streams: Sequence[StreamedInput],
    served: Sequence[Contract],
    *,
    lock_seconds: float = 120.0,
) -> Round:
    """Send what is due of everything that stands now.

    Args:
        settings: Settings of the deployment; without channels nothing is examined.
        graph: The lineage.
        streams: The streams that run beside it.
        served: Contracts of what is served outside the lake.
        lock_seconds: How long to wait for another process that is sending.

    Returns:
        How many messages were sent, and which channels failed.

    Raises:
        LockTimeout: Another process was sending all that time; transient.
        RecordUnusable: The record of alerts cannot be read or written.
    """
    if not settings.alerts.channels:
        return Round(sent=0, failures=(), paused=())
    with locked(deployment_alerts.lock(settings), seconds=lock_seconds):
        # Examined under the lock: an older view than that of the last sender would end what has just begun.
        standing = findings.standing(observed(settings, graph, streams, served))
        return sending.send(
            [alert_of(finding) for finding in standing],
            routes=deployment_alerts.routes(settings),
            policy=settings.alerts.policy,
            record=deployment_alerts.record(settings),
        )
