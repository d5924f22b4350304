"""The report's part about the data: findings and the state of each dataset, from recorded metadata alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain
from blogdata.ledger import ledger
from blogdata.ledger.ledger import LedgerLine
from blogdata.planning.clock import newest_end
from blogdata.planning.snapshot import Observed, landed_tables
from blogdata.watch.findings import standing

_WHOLE_TABLE = timedelta(days=1)
"""How often a table without partitions is expected to be published."""
_PROBLEMS = 5


class Freshness(str, Enum):
    FRESH = "in time"
    LATE = "late"
    UNPROMISED = "no promise"
    NEVER = "never published"


@dataclass(frozen=True, kw_only=True)
class DatasetState:
    """A dataset now; below zero, `reasons` are rows that it holds beyond its rows in."""

    dataset: str
    description: str
    owner: str
    freshness: Freshness
    promise_hours: float | None
    published_at: datetime | None
    newest: str | None
    partitions: int
    rows_in: int
    rows_out: int
    reasons: Mapping[str, int]
    unbalanced: int
    problems: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class DataPart:
    """The state of the data; `data_until` is the end of the newest published hour; findings as dictionaries."""

    findings: Sequence[Mapping[str, Any]]
    data_until: datetime | None
    datasets: Sequence[DatasetState]


def data_part(deployment: Observed, contracts: Mapping[str, Contract]) -> DataPart:
    """Compute the part about the data; the contracts are those of every dataset of the lake, streams among them."""
    look, graph = deployment.look, deployment.graph
    lines = {name: ledger.audit(look.events.lake, look.events, contract) for name, contract in contracts.items()}
    published = frozenset(name for name in contracts if lines[name])
    visible = published | graph.with_input([*published, *landed_tables(graph, look)])
    hourly = [contract for contract in contracts.values() if contract.grain is Grain.HOUR]
    ends = [newest_end(contract, look.published(contract.dataset)) for contract in hourly]
    # After the end of a simulation nothing is expected.
    now = deployment.ended_at or deployment.now
    return DataPart(
        findings=[
            {**vars(finding), "severity": finding.severity.value, "remedy": str(finding.remedy)}
            for finding in standing(deployment)
        ],
        data_until=max(filter(None, ends), default=None),
        datasets=[state_of(contracts[name], lines[name], now) for name in contracts if name in visible],
    )


def state_of(contract: Contract, lines: Sequence[LedgerLine], now: datetime) -> DatasetState:
    """Describe a dataset: late if nothing was published for a partition's length (without: a day) and its promise."""
    times = [line.entry.committed_at for line in lines if line.entry.committed_at is not None]
    published_at = max(times, default=None)
    reasons: Counter[str] = Counter()
    for line in lines:
        reasons.update(line.entry.reasons)
    problems = [f"{line.entry.partition or 'whole table'}: {line.problem}" for line in lines if line.problem]
    return DatasetState(
        dataset=contract.dataset,
        description=contract.description,
        owner=contract.owner,
        freshness=_freshness(contract, published_at, now),
        promise_hours=contract.freshness_hours,
        published_at=published_at,
        newest=max((line.entry.partition for line in lines), default="") or None,
        partitions=len(lines),
        rows_in=sum(line.entry.rows_in for line in lines),
        rows_out=sum(line.entry.rows_out for line in lines),
        reasons={reason: rows for reason, rows in sorted(reasons.items()) if rows},
        unbalanced=len(problems),
        problems=problems[:_PROBLEMS],
    )


def _freshness(contract: Contract, published_at: datetime | None, now: datetime) -> Freshness:
    if published_at is None:
        return Freshness.NEVER
    if contract.freshness_hours is None:
        return Freshness.UNPROMISED
    between = contract.grain.length if contract.grain is not None else _WHOLE_TABLE
    due = published_at + between + timedelta(hours=contract.freshness_hours)
    return Freshness.FRESH if now <= due else Freshness.LATE
