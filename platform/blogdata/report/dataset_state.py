"""Per dataset: whether it was published in time, and its rows in, out and left out by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from blogdata.evidence.ledger import LedgerLine
from blogdata.evidence.published_commits import PublishedCommit
from blogdata.planning.graph import Graph
from blogdata.publish.contract import Contract

_WHOLE_TABLE = timedelta(days=1)
"""How often a table without partitions is expected to be published."""
_PROBLEMS = 5


class Freshness(str, Enum):
    """Whether a dataset was published in time."""

    FRESH = "in time"
    LATE = "late"
    UNPROMISED = "no promise"
    NEVER = "never published"


@dataclass(frozen=True, kw_only=True)
class DatasetState:
    """A dataset now.

    Args:
        dataset: Name as `layer.table`.
        description: What a row is.
        owner: Who is responsible for it.
        freshness: Whether it was published in time.
        promise_hours: Hours after the end of a partition by which it is published; None: no promise.
        published_at: When it was last published; None: never, or not by this event log.
        due_at: When the next publication is late; None: no promise.
        newest: Newest partition; None for a table without partitions.
        partitions: Number of partitions, 1 for a table without.
        rows_in: Rows of the layer above that it accounts for.
        rows_out: Rows it published.
        rows_there: Rows in the table, by its log.
        reasons: Rows left out, by reason.
        unbalanced: Number of partitions that do not add up.
        problems: What does not add up, of the first of them.
    """

    dataset: str
    description: str
    owner: str
    freshness: Freshness
    promise_hours: float | None
    published_at: datetime | None
    due_at: datetime | None
    newest: str | None
    partitions: int
    rows_in: int
    rows_out: int
    rows_there: int
    reasons: Mapping[str, int]
    unbalanced: int
    problems: Sequence[str]


def state_of(
    contract: Contract, lines: Sequence[LedgerLine], commits: Sequence[PublishedCommit], now: datetime
) -> DatasetState:
    """Describe a dataset.

    A dataset is late when nothing was published for the length of a partition (a table without: a day) and its promise,
    as Dagster's freshness policy has it.

    Args:
        contract: Its contract.
        lines: Its audited ledger.
        commits: Its commits, in the order in which they were recorded.
        now: Current time, timezone-aware.
    """
    published_at = commits[-1].recorded_at if commits else None
    due_at = None
    if published_at is not None and contract.freshness_hours is not None:
        between = contract.grain.length if contract.grain is not None else _WHOLE_TABLE
        due_at = published_at + between + timedelta(hours=contract.freshness_hours)
    reasons: Counter[str] = Counter()
    for line in lines:
        reasons.update(line.entry.reasons)
    problems = [f"{line.entry.partition or 'whole table'}: {line.problem}" for line in lines if line.problem]
    return DatasetState(
        dataset=contract.dataset,
        description=contract.description,
        owner=contract.owner,
        freshness=_freshness(published_at, due_at, now),
        promise_hours=contract.freshness_hours,
        published_at=published_at,
        due_at=due_at,
        newest=max((line.entry.partition for line in lines), default="") or None,
        partitions=len(lines),
        rows_in=sum(line.entry.rows_in for line in lines),
        rows_out=sum(line.entry.rows_out for line in lines),
        rows_there=sum(line.rows_there for line in lines),
        reasons={reason: rows for reason, rows in sorted(reasons.items()) if rows},
        unbalanced=len(problems),
        problems=problems[:_PROBLEMS],
    )


def with_source(
    contracts: Mapping[str, Contract], graph: Graph, published: Collection[str], landed: Collection[str]
) -> Mapping[str, Contract]:
    """Return the datasets that were published, or can be from what this deployment has.

    What streams append, and what is served to another system, is there only in deployments that have it: once one
    dataset of the stream was published.

    Args:
        contracts: Every dataset, by name.
        graph: The lineage that runs compute.
        published: Those that were ever published.
        landed: Landed tables, as `landing.table`, of which something has landed.
    """
    computed = graph.with_input([*published, *landed])
    beside = [contract.write for name, contract in contracts.items() if name in published and name not in computed]
    return {
        name: contract
        for name, contract in contracts.items()
        if name in computed or (name not in graph.contracts and contract.write in beside)
    }


def _freshness(published_at: datetime | None, due_at: datetime | None, now: datetime) -> Freshness:
    if published_at is None:
        return Freshness.NEVER
    if due_at is None:
        return Freshness.UNPROMISED
    return Freshness.FRESH if now <= due_at else Freshness.LATE
