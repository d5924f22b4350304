"""Offline Observer: a job of its own profiles what is new since its last look, and compares it with what was usual.

Problem: every visit has a valid browser, so no rule is broken; but since Tuesday nine in ten have the same one. Looking
for that while the data are written would delay every publication.
How it works: :func:`unseen` compares the ledger with the profiles of earlier looks, so only periods with something new
are read; :func:`profile` counts, in one pass, the most frequent values of the columns that the contract names, of
numbers by powers of two. :func:`drifts` compares their distribution with that of comparable periods, the same weekday
where there are enough, by the population stability index. Profiles are events of the log, so the next look and every
report read them without the data (:func:`standing`).
The trap: a fixed limit. A distribution differs between periods for three normal reasons: the day of the week, few rows,
and rows of one session, which are alike. So a difference counts only if it is above a conventional limit, and above
what sampling explains.
When not to use it: to keep bad rows from readers; it looks when they have been read for hours. What it finds repeatedly
becomes an audit or a rule of the contract.
Source: Data Engineering Design Patterns, ch. 9.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from blogdata.contract.contract import LEAST_ROWS, Contract
from blogdata.contract.partitions import Grain, key_of, start_of
from blogdata.contract.publication import Entry, kept
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
_DAY = len("2026-01-05")
"""Length of the key of a period: the day of an hour, any longer partition itself."""
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


def unseen(published: Mapping[str, Entry], profiles: Iterable[Profile]) -> dict[str, list[str]]:
    """Map the periods with partitions that were published since their last profile to all their partitions."""
    seen: dict[str, int] = {}
    for look in profiles:
        seen[look.period] = max(look.version, seen.get(look.period, -1))
    periods: dict[str, list[str]] = {}
    for partition in sorted(published):
        periods.setdefault(partition[:_DAY], []).append(partition)
    return {
        period: partitions
        for period, partitions in periods.items()
        if max(published[partition].version for partition in partitions) > seen.get(period, -1)
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
    return sorted(profiles, key=lambda profile: profile.period)


def within(frame: DataFrame, contract: Contract, periods: Mapping[str, Sequence[str]]) -> DataFrame:
    """Return the rows of some periods, with the period in the column :data:`PERIOD`."""
    from pyspark.sql import functions as F

    assert contract.partition_column is not None, "profile a dataset that has partitions"
    key, wanted = F.col(contract.partition_column), [key for partitions in periods.values() for key in partitions]
    return frame.where(key.isin(wanted)).withColumn(PERIOD, F.substring(key, 1, _DAY))


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


def event_of(dataset: str, look: Profile, run_id: str) -> Event:
    # Without the table version in its own column: that one is of events derived from commits.
    return Event(kind=PROFILE, dataset=dataset, partition=look.period, run_id=run_id, payload=asdict(look))


def standing(events: EventLog, contract: Contract, published: Mapping[str, Entry]) -> list[Profile]:
    """Read the profiles of periods that have rows, oldest look first; what has expired or was lost does not stand."""
    periods = {partition[:_DAY] for partition, entry in kept(published).items() if entry.rows_out}
    payloads = (event.payload or {} for event in events.notes(PROFILE, dataset=contract.dataset))
    looks = (Profile(**{**known, "drifts": [Drift(**drift) for drift in known["drifts"]]}) for known in payloads)
    return [look for look in looks if look.period in periods]


def standing_drifts(looks: Iterable[Profile]) -> Sequence[Drift]:
    """List the drifts of the newest period: they stand until newer rows are looked at."""
    newest = max(looks, key=lambda look: (look.period, look.version), default=None)
    return () if newest is None else newest.drifts


def standing_orphans(looks: Iterable[Profile]) -> dict[str, dict[str, int]]:
    """Count the rows whose reference does not exist: referenced dataset to period to rows, without zeros."""
    missing: dict[str, dict[str, int]] = {}
    for period, orphans in sorted({look.period: look.orphans for look in looks}.items()):
        for dataset, rows in orphans.items():
            if rows:
                missing.setdefault(dataset, {})[period] = rows
    return dict(sorted(missing.items()))


def drifts(new: Profile, earlier: Sequence[Profile], contract: Contract) -> list[Drift]:
    """Find the columns whose distribution differs from comparable periods by more than the limit and chance."""
    compared, factor = comparable(new, earlier)
    past = [profile for profile in compared if profile.rows >= LEAST_ROWS]
    if new.rows < LEAST_ROWS or len(past) < LEAST_COMPARED:
        return []
    drifted = []
    for name in contract.profiled:
        index = stability(new, past, name)
        limit = max(factor * STABLE, _by_sampling(new, past, name))
        if index > limit:
            drifted.append(Drift(period=new.period, column=name, found=index, limit=limit))
    return drifted


def comparable(new: Profile, earlier: Iterable[Profile]) -> tuple[list[Profile], float]:
    """Choose the periods that a period is compared with, and the factor of its limit: the same weekdays, or a week."""
    by_version = sorted(earlier, key=lambda profile: profile.version)
    newest = {profile.period: profile for profile in by_version if profile.period < new.period}
    start = start_of(new.period, Grain.DAY)
    weekdays = [key_of(start - timedelta(weeks=back), Grain.DAY) for back in range(1, COMPARED + 1)]
    same = [newest[key] for key in weekdays if key in newest]
    if len(same) >= LEAST_COMPARED:
        return same, 1.0
    return [newest[key] for key in sorted(newest)[-7:]], BEFORE_WEEKDAYS


def stability(new: Profile, past: Sequence[Profile], name: str) -> float:
    """Return the population stability index between a period and others taken together; 0 if one has no rows."""
    usual, here = _pooled(past, name), new.counts.get(name, {})
    if not usual or not here:
        return 0.0
    values = usual.keys() | here.keys()
    # Half a row each, so that a value seen on one side only is compared, too.
    rows, expected_rows = (sum(counts.values()) + 0.5 * len(values) for counts in (here, usual))
    index = 0.0
    for value in values:
        share, expected = (here.get(value, 0) + 0.5) / rows, (usual.get(value, 0) + 0.5) / expected_rows
        index += (share - expected) * math.log(share / expected)
    return index


def _pooled(profiles: Iterable[Profile], name: str) -> Mapping[str, int]:
    return sum((Counter(profile.counts.get(name, {})) for profile in profiles), Counter[str]())


def _by_sampling(new: Profile, past: Sequence[Profile], name: str) -> float:
    """Return the index that sampling alone explains, for so many rows of which groups are alike."""
    from scipy.stats import chi2

    # The index is about a chi-squared statistic times the sum of the inverse sample sizes.
    apart = ALIKE / new.rows + ALIKE / sum(profile.rows for profile in past)
    return float(chi2.ppf(UNLIKELY, max(len(_pooled([new, *past], name)) - 1, 1))) * apart
