"""Everything about a deployment that a person should know now, from its recorded metadata and without Spark.

Alerts, metrics and the report show these findings, so they never disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from errors.remedies import Remedy, Run, ShowLedger
from evidence.finding import Finding, Severity
from patterns.quality.offline_observer import observations
from planning.arrivals import Arrivals
from planning.graph import Graph
from planning.look import Snapshot
from planning.plan import Planner
from planning.reach import landed_input
from publish.audit import warnings
from publish.schema import Failed

NEWEST = 24
"""How many of the newest partitions are looked at for what was published with a warning."""


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


def published_with_warning(deployment: Deployment) -> Iterator[Finding]:
    """Find the audits that failed in the newest partitions of a dataset without refusing them."""
    for contract in deployment.graph.contracts.values():
        for audit in contract.audits:
            if audit.failed is not Failed.WARNS:
                continue
            newest = sorted(deployment.look.published(contract.dataset).items())[-NEWEST:]
            failed = [partition for partition, entry in newest if audit.name in warnings(entry)]
            if failed:
                yield Finding(
                    source="audits",
                    dataset=contract.dataset,
                    owner=contract.owner,
                    severity=Severity.WARNING,
                    what=f"published with a failed audit, {audit.name}, in {len(failed)} of the newest {len(newest)} "
                    f"partitions, {failed[-1]} the last: {audit.description}",
                    remedy=Remedy(
                        "look at the rows, and decide whether to use them; what was left out: ",
                        ShowLedger(dataset=contract.dataset),
                    ),
                    figures={"partitions": len(failed)},
                )


def observed(deployment: Deployment) -> Iterator[Finding]:
    """Find the drift of the newest period that was looked at, and all rows whose reference does not exist."""
    for contract in deployment.graph.contracts.values():
        if not contract.profiled and not contract.references:
            continue
        seen = observations(deployment.look.events, contract.dataset)
        newest = max(seen, key=lambda one: (one.profile.period, one.profile.version), default=None)
        for drift in () if newest is None else newest.drifts:
            yield Finding(
                source="drift",
                dataset=contract.dataset,
                owner=contract.owner,
                severity=Severity.WARNING,
                what=f"the values of {drift.column} on {drift.period} are not distributed as before: {drift.test} "
                f"{drift.found:.2f}, usual is at most {drift.limit:.2f}",
                remedy=Remedy("look at its most frequent values; if the change is meant, it counts as usual in weeks"),
                partition=drift.column,
                figures={"found": drift.found, "limit": drift.limit},
            )
        for above in sorted({name for one in seen for name in one.orphans}):
            rows = {one.profile.period: one.orphans.get(above, 0) for one in seen}
            if any(rows.values()):
                yield Finding(
                    source="references",
                    dataset=contract.dataset,
                    owner=contract.owner,
                    severity=Severity.WARNING,
                    what=f"{sum(rows.values()):,} rows refer to nothing in {above}, in "
                    + ", ".join(period or "the table" for period, count in sorted(rows.items()) if count)[:100],
                    remedy=Remedy("compute again what is stale: ", Run(), "; if they stay, look at both tables"),
                    partition=above,
                    figures={"rows": sum(rows.values())},
                )


SOURCES: Sequence[Callable[[Deployment], Iterator[Finding]]] = (waiting, overdue, published_with_warning, observed)
