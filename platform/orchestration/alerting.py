"""Tells people what stands: findings become alerts, and what is due is sent, by one process at a time."""

from __future__ import annotations

from collections.abc import Sequence

from alerts import sending
from alerts.alert import Alert
from alerts.sending import Round
from evidence.events import EventLog
from evidence.finding import Finding
from lake.lake import Lake
from orchestration import external_events, partner
from patterns.ingestion.readiness_marker import LandingZone
from planning import findings, look
from planning.deployment import Deployment, StreamedInput
from planning.graph import Graph
from planning.look import Snapshot
from publish.contract import Contract
from publish.writes import Feed
from services import alert_channels
from services.config import Settings
from services.files import locked


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
) -> Deployment:
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
    return Deployment(
        graph=graph,
        look=seen,
        now=look.now(),
        streams=streams,
        inbox=external_events.inbox(settings),
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
    with locked(alert_channels.lock(settings), seconds=lock_seconds):
        # Examined under the lock: an older view than that of the last sender would end what has just begun.
        standing = findings.standing(observed(settings, graph, streams, served))
        return sending.send(
            [alert_of(finding) for finding in standing],
            routes=alert_channels.routes(settings),
            policy=settings.alerts.policy,
            record=alert_channels.record(settings),
        )
