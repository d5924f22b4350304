"""Everything about a deployment that a person should know now, from its recorded metadata and without Spark.

Alerts, metrics and the report show these findings, so they never disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from errors.remedies import Remedy
from evidence.finding import Finding, Severity
from planning.arrivals import Arrivals
from planning.graph import Graph
from planning.look import Snapshot
from planning.plan import Planner
from planning.reach import landed_input


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What findings are drawn from.

    Args:
        graph: The lineage.
        look: Snapshot of what has landed and what is published.
        now: Current time, timezone-aware.
    """

    graph: Graph
    look: Snapshot
    now: datetime


def standing(deployment: Deployment) -> list[Finding]:
    """List what stands now, by dataset and partition, the critical ones first."""
    found = [finding for source in SOURCES for finding in source(deployment)]
    return sorted(found, key=lambda one: (one.severity is not Severity.CRITICAL, one.identity))


def waiting(deployment: Deployment) -> Iterator[Finding]:
    """Find the partitions that wait for a person, because they failed or are held."""
    planner = Planner(graph=deployment.graph, look=deployment.look)
    for task in deployment.graph.tasks:
        for partition, error in planner.waiting(task).items():
            yield Finding(
                source="waiting",
                dataset=task.main,
                owner=task.contracts[0].owner,
                severity=Severity.CRITICAL,
                what=f"waits for a person: {error.what}, in {error.where}",
                remedy=error.remedy,
                partition=partition or None,
            )


def overdue(deployment: Deployment) -> Iterator[Finding]:
    """Find the landed partitions that are not complete after their deadline."""
    for contract in deployment.graph.contracts.values():
        if landed_input(contract) is None:
            continue
        found = Arrivals.of(contract, deployment.look.zone).overdue(deployment.look.events, deployment.now)
        if found.warning is not None:
            what, _, remedy = found.warning.rpartition("; ")
            yield Finding(
                source="overdue",
                dataset=contract.dataset,
                owner=contract.owner,
                severity=Severity.WARNING,
                what=what,
                remedy=Remedy(remedy),
                figures={"partitions": len(found.keys)},
            )


SOURCES: Sequence[Callable[[Deployment], Iterator[Finding]]] = (waiting, overdue)
