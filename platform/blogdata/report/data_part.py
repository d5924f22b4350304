"""The part about the data: what a person on call looks at, from recorded metadata alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from blogdata.evidence import ledger
from blogdata.evidence.finding import Finding
from blogdata.evidence.published_commits import PublishedCommit, published_commits
from blogdata.lake.lake import Lake
from blogdata.patterns.ingestion.readiness_marker import LandingZone
from blogdata.patterns.observability import dataset_tracker
from blogdata.patterns.quality.offline_observer import observations
from blogdata.planning.clock import newest_end
from blogdata.planning.findings import standing
from blogdata.planning.graph import Graph
from blogdata.planning.observed import Observed, StreamedInput
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.sources import landed_tables
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain
from blogdata.report import contract_changes, distributions, lineage_picture, measure_trends, run_costs
from blogdata.report.contract_changes import ContractChange, Difference
from blogdata.report.dataset_state import DatasetState, state_of, with_source
from blogdata.report.distributions import Distribution
from blogdata.report.elements import Words, words_of
from blogdata.report.lineage_picture import Picture
from blogdata.report.measure_trends import Trend
from blogdata.report.read_once import ReadOnce
from blogdata.report.rejected_rows import RejectedRows
from blogdata.report.run_costs import RunCost

RUNS = 60
"""Newest runs that are listed."""


@dataclass(frozen=True, kw_only=True)
class ReportInput:
    """Where the figures come from.

    Args:
        lake: The tables' root.
        events: The event log.
        zone: The landing zone.
        graph: The lineage that runs compute.
        lake_contracts: Every dataset of the lake, by name, streams among them.
        contracts: Every dataset, those served to a database among them.
        now: Current time, timezone-aware.
        streams: The streams that run beside the lineage.
    """

    lake: Lake
    events: ReadOnce
    zone: LandingZone
    graph: Graph
    lake_contracts: Mapping[str, Contract]
    contracts: Mapping[str, Contract]
    now: datetime
    streams: Sequence[StreamedInput]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A finding as the page shows it."""

    severity: str
    source: str
    dataset: str
    partition: str | None
    owner: str
    what: str
    remedy: Sequence[Words]


@dataclass(frozen=True, kw_only=True)
class LineFormat:
    """The landed lines of a format.

    Args:
        name: Name of the format.
        lines: How many.
        first: First day of arrival.
        last: Last day of arrival.
    """

    name: str
    lines: int
    first: str
    last: str


@dataclass(frozen=True, kw_only=True)
class DataPart:
    """The state of the data.

    Args:
        findings: What a person should know now, the critical ones first.
        data_until: End of the newest hour that is published; None without one.
        datasets: The datasets of the lake that were published or can be, in the order of the lineage.
        rejected: Dead letters and late rows.
        formats: Formats of landed logs, most lines first; empty if none has landed.
        trends: Measures by day.
        distributions: Profiled columns in the newest period, each beside the usual.
        runs: The newest runs, the newest first.
        changes: Changes of contracts, the newest first.
        differences: Tables that differ from their contracts.
        lineage: What the newest publications really read.
    """

    findings: Sequence[Standing]
    data_until: datetime | None
    datasets: Sequence[DatasetState]
    rejected: RejectedRows
    formats: Sequence[LineFormat]
    trends: Sequence[Trend]
    distributions: Sequence[Distribution]
    runs: Sequence[RunCost]
    changes: Sequence[ContractChange]
    differences: Sequence[Difference]
    lineage: Picture


def data_part(
    source: ReportInput,
    rejected: Callable[[], RejectedRows],
    formats: Callable[[], Sequence[LineFormat]],
    *,
    days: int,
) -> DataPart:
    """Compute the part about the data.

    Args:
        source: Where the figures come from.
        rejected: Computes dead letters and late rows, of those who know their columns.
        formats: Counts the lines of landed logs by format.
        days: How many days of history the series have.
    """
    events, contracts = source.events, source.lake_contracts
    lake = events.lake
    look = Snapshot(source.zone, events)
    # An audit reads again when another run publishes meanwhile; what it read last is what the other figures are of.
    lines = {name: ledger.audit(source.lake, events.fresh, contract) for name, contract in contracts.items()}
    # After the audits, which add missing events to the log.
    commits = published_commits(lake)
    by_dataset: dict[str, list[PublishedCommit]] = {}
    for commit in commits:
        by_dataset.setdefault(commit.dataset, []).append(commit)
    lineage = dataset_tracker.track(lake, events, source.contracts, landing=str(source.zone.folder))
    published = frozenset(name for name, node in lineage.nodes.items() if node.published)
    shown = with_source(source.contracts, source.graph, published, landed_tables(source.graph, look))
    deployment = Observed(graph=source.graph, look=look, now=source.now, streams=source.streams)
    found = standing(deployment)
    ends = [newest_end(contract, look.published(name)) for name, contract in contracts.items() if _is_hourly(contract)]
    companions = frozenset(name for name, contract in contracts.items() if contract.appears_with)
    return DataPart(
        findings=[_standing(finding) for finding in found],
        data_until=max(filter(None, ends), default=None),
        datasets=[
            # After the end of a simulation nothing is expected.
            state_of(contract, lines[name], by_dataset.get(name, ()), deployment.ended_at or source.now)
            for name, contract in contracts.items()
            if name in shown
        ],
        rejected=rejected(),
        formats=formats(),
        trends=[
            trend
            for name, contract in contracts.items()
            for trend in measure_trends.trends(contract, look.published(name), days=days)
        ],
        distributions=[
            found
            for contract in contracts.values()
            if contract.profiled
            for found in distributions.distributions(contract, observations(events, contract.dataset))
        ],
        runs=run_costs.runs_of(commits, companions)[:RUNS],
        changes=contract_changes.changes(commits),
        differences=[
            difference
            for contract in contracts.values()
            if (difference := contract_changes.difference(lake, contract)) is not None
        ],
        lineage=lineage_picture.picture(
            replace(
                lineage,
                nodes={name: node for name, node in lineage.nodes.items() if node.owner is None or name in shown},
            )
        ),
    )


def _is_hourly(contract: Contract) -> bool:
    return contract.grain is Grain.HOUR


def _standing(finding: Finding) -> Standing:
    return Standing(
        severity=finding.severity.value,
        source=finding.source,
        dataset=finding.dataset,
        partition=finding.partition,
        owner=finding.owner,
        what=finding.what,
        remedy=words_of(finding.remedy),
    )
