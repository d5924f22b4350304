"""The findings of a deployment, which alerts, metrics and the report show: from recorded metadata, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from assets.stream_inputs import streamed_inputs
from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain, key_of
from blogdata.contract.schema import Failed
from blogdata.deliver import partner
from blogdata.errors import PlatformError
from blogdata.errors.finding import Finding, Severity
from blogdata.errors.remedies import Remedy, Run, ShowLedger, ShowMigrations
from blogdata.landing import external_trigger
from blogdata.ledger.events import EVENTS
from blogdata.ledger.faults import by_reason
from blogdata.operate.config import Settings
from blogdata.patterns.quality import offline_observer
from blogdata.planning import clock
from blogdata.planning.arrivals import Arrivals, refusals
from blogdata.planning.plan import Planner
from blogdata.planning.reach import landed_input
from blogdata.planning.snapshot import Observed
from blogdata.runs.zone import snapshot_of
from blogdata.table.audit import warnings
from blogdata.watch import detectors
from quality.contracts import GRAPH
from quality.contracts.serving import PARTNER_FEED

NEWEST = 24
"""How many of the newest partitions are searched for audits that failed with a warning."""
LONGEST_WAIT_FOR_PARTNER = timedelta(hours=6)
"""Age from which the hours of records that wait for the partner are a finding."""


def observed(settings: Settings, now: datetime | None = None) -> Observed:
    return Observed(
        graph=GRAPH,
        look=snapshot_of(settings),
        now=now or clock.now(),
        streams=streamed_inputs(settings.checkpoints),
        feeds=[(PARTNER_FEED, partner.outbox(settings))],
    )


def standing(deployment: Observed) -> list[Finding]:
    """List the findings, the critical ones first; a source that fails is itself a finding, and hides no other."""
    standing: list[Finding] = []
    for source in SOURCES:
        try:
            standing.extend(source(deployment))
        except PlatformError as error:
            standing.append(
                Finding(
                    source="findings",
                    dataset=EVENTS,
                    # The owner of the first dataset: of what comes in.
                    owner=next(iter(deployment.contracts.values())).owner,
                    severity=Severity.CRITICAL,
                    what=f"{source.__name__} could not be looked at: {error.what}, in {error.where}",
                    remedy=error.remedy,
                    partition=source.__name__,
                )
            )
    return sorted(standing, key=lambda finding: (finding.severity is not Severity.CRITICAL, finding.identity))


def _finding(
    contract: Contract, source: str, what: str, remedy: Remedy, at: str | None = None, severity: Severity | None = None
) -> Finding:
    return Finding(
        source=source,
        dataset=contract.dataset,
        owner=contract.owner,
        severity=severity or Severity.WARNING,
        what=what,
        remedy=remedy,
        partition=at,
    )


def waiting(deployment: Observed) -> Iterator[Finding]:
    """Find the partitions that wait for a person, because they failed or are held; those of one reason together."""
    planner = Planner(graph=deployment.graph, look=deployment.look)
    for task in deployment.graph.tasks:
        for errors in by_reason(planner.waiting(task)).values():
            (partition, error), *others = errors.items()
            waits = f"it and {len(others)} more, up to {others[-1][0]}, wait" if others else "waits"
            what = f"{waits} for a person: {error.what}, in {error.where}"
            yield _finding(task.contracts[0], "waiting", what, error.remedy, partition or None, Severity.CRITICAL)


def lost(deployment: Observed) -> Iterator[Finding]:
    for contract in deployment.graph.contracts.values():
        if (version := deployment.look.events.gone(contract.dataset)) >= 0:
            what = f"version {version} was published, and the table is gone or older"
            remedy = Remedy("bring it back from a backup; or move what is left of it away, and run: ", Run())
            yield _finding(contract, "lost", what, remedy, severity=Severity.CRITICAL)


def overdue(deployment: Observed) -> Iterator[Finding]:
    for contract in deployment.graph.contracts.values():
        if landed_input(contract) is None:
            continue
        late = Arrivals.of(contract, deployment.look.zone).overdue(deployment.look.events, deployment.now)
        if late.warning is not None:
            what, _, remedy = late.warning.rpartition("; ")
            yield _finding(contract, "overdue", what, Remedy(remedy))


def astray(deployment: Observed) -> Iterator[Finding]:
    zone = deployment.look.zone
    landed = [contract for contract in deployment.graph.contracts.values() if landed_input(contract) is not None]
    for contract in landed:
        arrivals = Arrivals.of(contract, zone)
        for kind, text in (("place", arrivals.astray_warning), ("name", arrivals.misnamed_warning)):
            if text is not None:
                what, _, remedy = text.rpartition("; ")
                yield _finding(contract, "astray", what, Remedy(remedy), kind)
    for error in refusals(landed, zone):
        yield _finding(landed[0], "astray", f"{error.what}, in {error.where}", error.remedy, error.where)


def published_with_warning(deployment: Observed) -> Iterator[Finding]:
    """Find the audits that failed in the newest partitions of a dataset without refusing them."""
    for contract in deployment.graph.contracts.values():
        for audit in contract.audits:
            if audit.failed is not Failed.WARNS:
                continue
            newest = sorted(deployment.look.published(contract.dataset).items())[-NEWEST:]
            failed = [partition for partition, entry in newest if audit.name in warnings(entry)]
            if failed:
                what = (
                    f"published with a failed audit, {audit.name}, in {len(failed)} of the newest {len(newest)} "
                    f"partitions, {failed[-1]} the last: {audit.description}"
                )
                look = "look at the rows, and decide whether to use them; what was left out: "
                remedy = Remedy(look, ShowLedger(dataset=contract.dataset))
                yield _finding(contract, "audits", what, remedy, audit.name)


def profiled(deployment: Observed) -> Iterator[Finding]:
    """Find the drift of the newest profiled period, and all rows whose reference does not exist."""
    for contract in deployment.contracts.values():
        if not contract.profiled and not contract.references:
            continue
        published = deployment.look.published(contract.dataset)
        seen = offline_observer.standing(deployment.look.events, contract, published)
        for drift in offline_observer.standing_drifts(seen):
            what = (
                f"the values of {drift.column} on {drift.period} are not distributed as before: population stability "
                f"index {drift.found:.2f}, usual is at most {drift.limit:.2f}"
            )
            remedy = Remedy("look at its most frequent values; if the change is meant, it counts as usual in weeks")
            yield _finding(contract, "drift", what, remedy, drift.column)
        for above, rows in offline_observer.standing_orphans(seen).items():
            periods = ", ".join(period or "the table" for period in rows)[:100]
            what = f"{sum(rows.values()):,} rows refer to nothing in {above}, in {periods}"
            remedy = Remedy("compute again what is stale: ", Run(), "; if they stay, look at both tables")
            yield _finding(contract, "references", what, remedy, above)


def retiring(deployment: Observed) -> Iterator[Finding]:
    """Find the columns whose grace period is over, and whose migration nobody has finished."""
    for contract in deployment.graph.contracts.values():
        for migration in contract.migrations:
            if migration.ends <= deployment.now.date():
                what = f"the time to {migration} is over since {migration.ends}, and every row has both still"
                remedy = Remedy("see who reads the old column, and finish it: ", ShowMigrations())
                yield _finding(contract, "migration", what, remedy, migration.old)


def unstarted(deployment: Observed) -> Iterator[Finding]:
    landing = deployment.look.zone.folder
    contract = next(iter(deployment.contracts.values()))
    refused = landing / external_trigger.FOLDER / external_trigger.REFUSED
    for file in sorted(refused.glob(f"*{external_trigger.SUFFIX}")):
        what = f"the event in {file.relative_to(landing)} starts no run; the reason is in the file beside it"
        remedy = Remedy("have its sender send it again, corrected; then remove both files")
        yield _finding(contract, "events", what, remedy, file.name)


def unsent(deployment: Observed) -> Iterator[Finding]:
    """Find what does not reach a partner, and what it has and should not."""
    for contract, outbox in deployment.feeds:
        lines = outbox.lines()
        before = key_of(deployment.now - LONGEST_WAIT_FOR_PARTNER, Grain.HOUR)
        old = [line.states for line in lines if line.partition < before]
        late = sum(states.get("waiting", 0) + states.get("sending", 0) for states in old)
        for name, count, what in (
            ("waiting", late, "wait for the partner"),
            ("withdrawn", sum(line.withdrawn for line in lines), "were withdrawn after they were sent"),
        ):
            if count:
                remedy = Remedy("see what the partner has: ", ShowLedger(dataset=contract.dataset))
                yield _finding(contract, "feed", f"{count:,} records {what}", remedy, name)


SOURCES: Sequence[Callable[[Observed], Iterator[Finding]]] = (
    waiting,
    lost,
    overdue,
    astray,
    published_with_warning,
    profiled,
    retiring,
    unstarted,
    unsent,
    detectors.findings,
)
