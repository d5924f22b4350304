"""Online Observer: a dataset is measured by the job that writes it, so measures are published with the data.

Problem: an observer that runs once a day reports at noon that the referral was null in all rows since midnight.

How it works: :func:`observe` turns a contract into SQL aggregates (share of nulls, distinct values). They are computed
in the same pass as the audits, over the files just written, and stored in the commit. :func:`series` reads them back
as a time series over the partitions, without reading the data, and the dataset's check `measures` compares each
partition with the preceding ones.

The trap: a measure is not a promise. A null share that doubles must be reported, but must not stop the job; what must
stop it is an audit. And an empty partition has no null share: it is absent from the series, not zero.

When not to use it: for measures that need other datasets, history or much time (distributions, drift): they
would delay every write; an Offline Observer computes them outside the hot path.

Source: Data Engineering Design Patterns, ch. 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from blogdata.errors import ConfigurationError
from blogdata.lake.commit import Entry
from blogdata.patterns.quality.jumps import Point
from blogdata.publish.contract import Contract

NULL_SHARE = "null_share"
DISTINCT = "approx_distinct"


def observe(contract: Contract, *, distinct: Sequence[str] = ()) -> Mapping[str, str]:
    """Build SQL aggregates for the `measures` of a contract.

    Returns:
        `null_share.<column>` (0 to 1) of each nullable column, and `approx_distinct.<column>` (a count).
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
    """Return the contract with the observer's measures added; measures that it declares itself take precedence."""
    return replace(contract, measures={**observe(contract, distinct=distinct), **contract.measures})


def observed_measures(contract: Contract) -> Sequence[str]:
    return [name for name in contract.measures if name.startswith((f"{NULL_SHARE}.", f"{DISTINCT}."))]


def series(published: Mapping[str, Entry], measure: str) -> Sequence[Point]:
    """Read an observer's measure back as a series over the partitions.

    Args:
        measure: `null_share.<column>`, or `approx_distinct.<column>`, which is divided by the number of rows.

    Returns:
        One point per measured partition, 0 to 1, by time, with the partition's number of rows.
    """
    return [
        Point(partition=partition, value=_share(measure, entry), rows=entry.rows_out)
        for partition, entry in sorted(published.items())
        if measure in entry.measures
    ]


def rates(published: Mapping[str, Entry], reason: str) -> Sequence[Point]:
    """Read the share of rows left out for a reason (duplicates, a filter) as a series over the partitions.

    Args:
        reason: Reason as in the ledger; the rate is 0 where a partition does not have it.

    Returns:
        One point per partition, by time: rows left out for the reason divided by rows in, with the number of rows in.
    """
    return [
        Point(
            partition=partition,
            value=entry.reasons.get(reason, 0) / entry.rows_in if entry.rows_in else None,
            rows=entry.rows_in,
        )
        for partition, entry in sorted(published.items())
    ]


def _share(measure: str, entry: Entry) -> float | None:
    value = entry.measures[measure]
    if not isinstance(value, (int, float)) or not entry.rows_out:
        return None
    # An approximate count may exceed the number of rows.
    return min(1.0, value / entry.rows_out) if measure.startswith(f"{DISTINCT}.") else float(value)
