"""Offline Observer: a job of its own profiles what is new since its last look, and compares it with what was usual.

Problem: every visit has a valid browser, so no rule is broken; but since Tuesday nine in ten have the same one. Looking
for that while the data are written would delay every publication.

How it works: :func:`unseen` compares the ledger with the profiles of earlier looks, so only periods with something new
are read again; :func:`profile` counts, in one pass, the most frequent values of the columns that the contract names, of
numbers by powers of two. :func:`drifts` compares their distribution with that of comparable periods, the same weekday
where there are enough, by the population stability index. Profiles are events of the log, so the next look and every
report read them without the data (:func:`standing`).

The trap: a fixed limit. A distribution differs between periods for three normal reasons: the day of the week, few rows,
and rows of one session, which are alike. So a difference counts only if it is larger than a conventional limit, than
what sampling explains, and than what the earlier periods differ from each other.

When not to use it: to keep bad rows from readers; it looks when they have been read for hours. What it finds again and
again becomes an audit or a rule of the contract.

Source: Data Engineering Design Patterns, ch. 9.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

from blogdata.contract.contract import LEAST_ROWS, Contract
from blogdata.contract.partitions import Grain, coarser, key_of, start_of
from blogdata.contract.publication import WHOLE_TABLE, Entry, kept
from blogdata.errors import ConfigurationError
from blogdata.ledger.events import Event

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from blogdata.ledger.events import EventLog

PROFILE = "profile"
TOP = 20
"""Number of values counted by name in a distribution; all others count as one."""
PERIOD = "profiled_period"
"""Column of the rows' period while they are profiled."""
STABLE = 0.25
"""Population stability index above which a population has shifted, by convention (Siddiqi, Credit Risk Scorecards)."""
BEFORE_WEEKDAYS = 2.0
"""Factor of this limit while there are not enough periods of the same weekday: the first weekend may differ."""
COMPARED = 4
"""Number of periods that a period is compared with, at most: the same weekday of so many weeks."""
LEAST_COMPARED = 3
"""Number of periods below which nothing is judged."""
ALIKE = 4.0
"""Rows that carry as little information as one independent row: those of one session are alike."""
UNLIKELY = 0.9999
"""Quantile of what sampling explains."""
SPREAD = 4.0
"""How many standard deviations above the mean difference between earlier periods a difference is unusual."""
_OTHERS = "\N{HORIZONTAL ELLIPSIS}"
_NUMERIC = ("BIGINT", "INT", "SMALLINT", "DOUBLE", "FLOAT", "DECIMAL")


@dataclass(frozen=True, kw_only=True)
class Drift:
    """A column whose distribution differs from what was usual: the index found, and the largest usual one."""

    period: str
    column: str
    found: float
    limit: float


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One period of a dataset, as one look found it."""

    period: str
    version: int
    rows: int
    counts: Mapping[str, Mapping[str, int]]
    """Column to its most frequent values and their rows, approximate; `…` counts all others."""
    drifts: Sequence[Drift] = ()
    orphans: Mapping[str, int] = field(default_factory=dict)
    """Referenced dataset to the rows whose reference does not exist there."""


def require_profilable(contract: Contract) -> None:
    """Refuse a contract that names columns whose values must not be stored, or that it does not have."""
    known = {column.name: column for column in contract.columns}
    wrong = [name for name in contract.profiled if name not in known or known[name].personal or known[name].singles_out]
    if wrong:
        raise ConfigurationError(
            what=f"columns that cannot be profiled, because they are personal or unknown: {', '.join(wrong)}",
            where=contract.dataset,
            next_step="profile other columns",
        )


def period_of(partition: str, grain: Grain | None) -> str:
    """Return the period that a partition is profiled with: hours by day, longer partitions by themselves."""
    return coarser(partition, Grain.HOUR, Grain.DAY) if grain is Grain.HOUR else partition


def unseen(published: Mapping[str, Entry], profiles: Iterable[Profile], grain: Grain | None) -> dict[str, list[str]]:
    """Map the periods with partitions that were published since they were last looked at to all their partitions."""
    seen: dict[str, int] = {}
    for one in profiles:
        seen[one.period] = max(one.version, seen.get(one.period, -1))
    periods: dict[str, list[str]] = {}
    for partition in sorted(published):
        periods.setdefault(period_of(partition, grain), []).append(partition)
    return {
        period: partitions
        for period, partitions in periods.items()
        if any(published[partition].version > seen.get(period, -1) for partition in partitions)
    }


def profile(frame: DataFrame, contract: Contract, periods: Mapping[str, Sequence[str]], version: int) -> list[Profile]:
    """Profile periods of a dataset, in one pass over their partitions."""
    from pyspark.sql import functions as F

    values = [F.expr(_distribution(contract, name)).alias(name) for name in contract.profiled]
    rows = within(frame, contract, periods).groupBy(PERIOD).agg(F.count(F.lit(1)).alias("__rows"), *values).collect()
    profiles = [
        Profile(
            period=row[PERIOD],
            version=version,
            rows=row["__rows"],
            counts={name: _counts(row[name], row["__rows"]) for name in contract.profiled},
        )
        for row in rows
    ]
    return sorted(profiles, key=lambda one: one.period)


def within(frame: DataFrame, contract: Contract, periods: Mapping[str, Sequence[str]]) -> DataFrame:
    """Return the rows of some periods, with the period in the column :data:`PERIOD`."""
    from pyspark.sql import functions as F

    column = contract.partition_column
    if column is None:
        return frame.withColumn(PERIOD, F.lit(WHOLE_TABLE))
    wanted = [partition for partitions in periods.values() for partition in partitions]
    key = F.col(column)
    period = F.substring(key, 1, len("2026-01-05")) if contract.grain is Grain.HOUR else key
    return frame.where(key.isin(wanted)).withColumn(PERIOD, period)


def _distribution(contract: Contract, name: str) -> str:
    kind = next(column.type for column in contract.columns if column.name == name)
    value = f"`{name}`"
    if kind.upper().startswith(_NUMERIC):
        value = f"if({value} IS NULL, NULL, concat('2^', cast(floor(log2(greatest({value}, 1))) AS STRING)))"
    return f"approx_top_k(coalesce(cast({value} AS STRING), 'null'), {TOP})"


def _counts(values: Sequence[Any], rows: int) -> dict[str, int]:
    counts = {str(value["item"]): int(value["count"]) for value in values}
    others = rows - sum(counts.values())
    return {**counts, _OTHERS: others} if others > 0 else counts


def event_of(dataset: str, one: Profile, run_id: str) -> Event:
    # Without the table version in its own column: that one is of events derived from commits.
    return Event(kind=PROFILE, dataset=dataset, partition=one.period, run_id=run_id, payload=asdict(one))


def standing(events: EventLog, contract: Contract, published: Mapping[str, Entry]) -> list[Profile]:
    """Read the profiles of periods that have rows, oldest look first; what has expired or was lost does not stand."""
    there = {period_of(partition, contract.grain) for partition, entry in kept(published).items() if entry.rows_out}
    payloads = (event.payload or {} for event in events.notes(PROFILE, dataset=contract.dataset))
    seen = (Profile(**{**known, "drifts": [Drift(**drift) for drift in known["drifts"]]}) for known in payloads)
    return [one for one in seen if one.period in there]


def standing_drifts(seen: Iterable[Profile]) -> Sequence[Drift]:
    """List the drifts of the newest period: they stand until newer rows are looked at."""
    newest = max(seen, key=lambda one: (one.period, one.version), default=None)
    return () if newest is None else newest.drifts


def standing_orphans(seen: Iterable[Profile]) -> dict[str, dict[str, int]]:
    """Count the rows whose reference does not exist: referenced dataset to period to rows, without zeros."""
    newest = {one.period: one.orphans for one in seen}
    found: dict[str, dict[str, int]] = {}
    for period, orphans in sorted(newest.items()):
        for above, rows in orphans.items():
            if rows:
                found.setdefault(above, {})[period] = rows
    return dict(sorted(found.items()))


def drifts(new: Profile, earlier: Sequence[Profile], contract: Contract) -> list[Drift]:
    """Find the columns whose distribution differs from comparable periods more than chance and the past explain."""
    past = [one for one in comparable(new, earlier, contract.grain) if one.rows >= LEAST_ROWS]
    if new.rows < LEAST_ROWS or len(past) < LEAST_COMPARED:
        return []
    factor = 1.0 if _are_same_weekdays(new, past, contract.grain) else BEFORE_WEEKDAYS
    found = []
    for name in contract.profiled:
        here = stability(new, past, name)
        if here is None:
            continue
        others = [(one, [other for other in past if other is not one]) for one in past]
        among = [apart for one, rest in others if (apart := stability(one, rest, name)) is not None]
        limit = max(
            factor * STABLE,
            _by_sampling(new, past, name),
            fmean(among) + SPREAD * pstdev(among) if among else 0.0,
        )
        if here > limit:
            found.append(Drift(period=new.period, column=name, found=here, limit=limit))
    return found


def _are_same_weekdays(new: Profile, past: Sequence[Profile], grain: Grain | None) -> bool:
    if grain is None or grain is Grain.WEEK:
        return True
    weekday = start_of(new.period, Grain.DAY).weekday()
    return all(start_of(one.period, Grain.DAY).weekday() == weekday for one in past)


def comparable(new: Profile, earlier: Iterable[Profile], grain: Grain | None) -> list[Profile]:
    """Choose the periods that a period is compared with: the same weekdays before it, or else the newest days."""
    newest: dict[str, Profile] = {}
    for one in sorted(earlier, key=lambda one: one.version):
        if one.period < new.period or grain is None:
            newest[one.period if grain is not None else str(one.version)] = one
    if grain is None or grain is Grain.WEEK:
        return [newest[key] for key in sorted(newest)[-COMPARED:]]
    start = start_of(new.period, Grain.DAY)
    weekdays = [key_of(start - timedelta(weeks=back), Grain.DAY) for back in range(1, COMPARED + 1)]
    same = [newest[key] for key in weekdays if key in newest]
    if len(same) >= LEAST_COMPARED:
        return same
    return [newest[key] for key in sorted(newest)[-7:]]


def stability(new: Profile, past: Sequence[Profile], name: str) -> float | None:
    """Return the population stability index between a period and others taken together; None if one has no rows."""
    usual, here = _pooled(past, name), new.counts.get(name, {})
    if not usual or not here:
        return None
    values = usual.keys() | here.keys()
    # Half a row each, so that a value seen on one side only is compared, too.
    rows, expected_rows = (sum(counts.values()) + 0.5 * len(values) for counts in (here, usual))
    index = 0.0
    for value in values:
        found, expected = (here.get(value, 0) + 0.5) / rows, (usual.get(value, 0) + 0.5) / expected_rows
        index += (found - expected) * math.log(found / expected)
    return index


def _pooled(profiles: Iterable[Profile], name: str) -> Mapping[str, int]:
    """Add up the counts of a column's values over periods."""
    pooled = Counter[str]()
    for one in profiles:
        pooled.update(one.counts.get(name, {}))
    return pooled


def _by_sampling(new: Profile, past: Sequence[Profile], name: str) -> float:
    """Return the index that sampling alone explains, for so many rows of which groups are alike."""
    from scipy.stats import chi2

    # The index is about a chi-squared statistic times the sum of the inverse sample sizes.
    apart = ALIKE / new.rows + ALIKE / sum(one.rows for one in past)
    return float(chi2.ppf(UNLIKELY, max(len(_pooled([new, *past], name)) - 1, 1))) * apart
