"""Online Observer: a dataset is measured by the job that writes it, so measures are there with the data.

Problem: an observer that runs once a day finds at noon that the referral was null for everybody since
midnight.

How it works: :func:`observe` turns a contract into SQL aggregates (share of nulls, distinct values). They
join the audits' one pass over the files just written and travel in the commit; :func:`series` reads them
back as a line over the partitions, for a plot or a detector, without touching the data.

The trap: a measure is not a promise. A null share that doubles must be seen, not stop the job; what must
stop it is an audit. And an empty partition has no null share: it is absent from the series, not zero.

When not to use it: for measures that need other datasets, history or much time (distributions, drift): they
would delay every write, and an Offline Observer takes them beside the hot path.

Source: Data Engineering Design Patterns, ch. 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from patterns.core.contract import Contract
from patterns.core.errors import ConfigurationError
from patterns.core.events import EventLog

NULL_SHARE = "null_share"
DISTINCT = "approx_distinct"


@dataclass(frozen=True, kw_only=True)
class Point:
    """One measure of one partition as its newest publication took it; None when it had no rows to measure."""

    partition: str
    value: float | None


def observe(contract: Contract, *, distinct: Sequence[str] = ()) -> Mapping[str, str]:
    """Give the measures of a dataset as SQL aggregates that a contract's `measures` can hold.

    Args:
        contract: What is promised; each nullable column's share of nulls is measured.
        distinct: Columns whose distinct values are counted too, with HyperLogLog++ (5 % relative deviation).

    Returns:
        `null_share.<column>` (0 to 1) and `approx_distinct.<column>` (a count) to their aggregates.

    Raises:
        ConfigurationError: A column is not in the contract.
    """
    unknown = sorted(set(distinct) - {column.name for column in contract.columns})
    if unknown:
        raise ConfigurationError(
            what=f"columns that the contract does not declare: {', '.join(unknown)}",
            where=f"observer of {contract.dataset}",
            next_step="name columns of the contract",
        )
    measures = {
        f"{NULL_SHARE}.{column.name}": f"avg(cast(`{column.name}` is null as double))"
        for column in contract.columns
        if column.nullable
    }
    measures.update({f"{DISTINCT}.{name}": f"approx_count_distinct(`{name}`)" for name in distinct})
    return measures


def observed(contract: Contract, *, distinct: Sequence[str] = ()) -> Contract:
    """Give the contract with its observer's measures added; measures it declares itself stay as they are."""
    return replace(contract, measures={**observe(contract, distinct=distinct), **contract.measures})


def series(events: EventLog, dataset: str, measure: str) -> Sequence[Point]:
    """Read a measure back as a series over the partitions.

    Args:
        events: The event log.
        dataset: Name as `layer.table`.
        measure: Name of a measure of its contract.

    Returns:
        One point per published partition that was measured, in the order of time.
    """
    entries = sorted(events.publications(dataset).items())
    return [
        Point(partition=partition, value=_number(entry.measures[measure]))
        for partition, entry in entries
        if measure in entry.measures
    ]


def rates(events: EventLog, dataset: str, reason: str) -> Sequence[Point]:
    """Read the share of rows left out for a reason (duplicates, a filter) as a series over the partitions.

    Args:
        events: The event log.
        dataset: Name as `layer.table`.
        reason: Reason as in the ledger.

    Returns:
        One point per published partition: rows left out for the reason by rows in; None without rows in.
    """
    return [
        Point(
            partition=partition,
            value=entry.reasons.get(reason, 0) / entry.rows_in if entry.rows_in else None,
        )
        for partition, entry in sorted(events.publications(dataset).items())
    ]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
