"""Offline Observer: a job of its own profiles what is new since its last look, and compares it with what was usual.

Problem: every visit has a valid browser, so no rule is broken; but since Tuesday nine in ten have the same one. Looking
for that while the data are written would delay every publication.

How it works: :func:`unseen` compares the ledger with the profiles of earlier looks, so only periods with something new
are read again; :func:`profile` measures them in one pass: rows, shares of nulls, distinct values, and for the columns
that the contract names the distribution of their values. The module `drift` compares a distribution with that of
comparable periods, the same weekday where there are enough: by the population stability index for categories, and by
the Kolmogorov-Smirnov distance for numbers. Profiles are events of the log, so the next look and every report read
them without the data, and a look that finds nothing new repeats what the last one found (:func:`standing_drifts`).

The trap: a fixed limit. Few rows differ by chance, and rows of one session are alike; some columns always vary. So the
limit is at least what sampling explains, and at least what the periods before differed from each other.

When not to use it: to keep bad rows from readers; it looks when they have been read for hours. What it finds again and
again becomes an audit or a rule of the contract.

Source: Data Engineering Design Patterns, ch. 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from blogdata.errors import ConfigurationError
from blogdata.evidence.event import Event
from blogdata.lake.commit import WHOLE_TABLE, Entry, kept
from blogdata.patterns.quality.drift import QUANTILES, ColumnProfile, Drift, Profile, is_number
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, coarser

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from blogdata.evidence.events import EventLog

PROFILE = "profile"
"""Kind of the events that hold the profiles."""
TOP = 20
"""Number of values counted by name in a categorical distribution; all others count as one."""
PERIOD = "profiled_period"
"""Column of the rows' period while they are profiled."""
_OTHERS = "\N{HORIZONTAL ELLIPSIS}"


def require_profilable(contract: Contract) -> None:
    """Refuse a contract that names columns whose values must not be stored, or that it does not have."""
    known = {column.name: column for column in contract.columns}
    wrong = [name for name in contract.profiled if name not in known or known[name].personal or known[name].singles_out]
    if wrong:
        raise ConfigurationError(
            what=f"columns that cannot be profiled, because they are personal or unknown: {', '.join(wrong)}",
            where=contract.dataset,
            next_step="profile other columns; shares of nulls are measured for all of them",
        )


def period_of(partition: str, grain: Grain | None) -> str:
    """Return the period that a partition is profiled with: hours by day, longer partitions by themselves."""
    return coarser(partition, Grain.HOUR, Grain.DAY) if grain is Grain.HOUR else partition


def unseen(published: Mapping[str, Entry], profiles: Iterable[Profile], grain: Grain | None) -> dict[str, list[str]]:
    """Find the periods with partitions that were published since they were last looked at.

    Returns:
        Period to all of its partitions, by time.
    """
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

    aggregates = [F.count(F.lit(1)).alias("rows")]
    for each in contract.columns:
        aggregates.append(F.count_if(F.col(each.name).isNull()).alias(f"nulls.{each.name}"))
    for name in contract.profiled:
        aggregates.append(F.approx_count_distinct(name).alias(f"distinct.{name}"))
        aggregates.append(F.expr(_distribution(contract, name)).alias(f"values.{name}"))
    rows = within(frame, contract, periods).groupBy(PERIOD).agg(*aggregates).collect()
    found = (_profile(contract, row.asDict(recursive=True), version) for row in rows if row["rows"])
    return sorted(found, key=lambda one: one.period)


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
    if is_number(contract, name):
        return f"percentile_approx(`{name}`, array({', '.join(map(str, QUANTILES))}), 1000)"
    return f"approx_top_k(coalesce(cast(`{name}` AS STRING), 'null'), {TOP})"


def _profile(contract: Contract, row: Mapping[str, Any], version: int) -> Profile:
    rows = int(row["rows"])
    columns = {}
    for each in contract.columns:
        name = each.name
        values = row.get(f"values.{name}")
        number = name in contract.profiled and is_number(contract, name)
        columns[name] = ColumnProfile(
            null_share=row[f"nulls.{name}"] / rows,
            distinct=int(row.get(f"distinct.{name}", 0)),
            counts={} if values is None or number else _counts(values, rows),
            quantiles=[float(value) for value in values] if values is not None and number else (),
        )
    return Profile(period=row[PERIOD], version=version, rows=rows, columns=columns)


def _counts(values: Sequence[Mapping[str, Any]], rows: int) -> dict[str, int]:
    counts = {str(value["item"]): int(value["count"]) for value in values}
    others = rows - sum(counts.values())
    return {**counts, _OTHERS: others} if others > 0 else counts


@dataclass(frozen=True, kw_only=True)
class Observation:
    profile: Profile
    drifts: Sequence[Drift]
    orphans: Mapping[str, int]
    run_id: str


def event_of(dataset: str, one: Observation) -> Event:
    payload = asdict(one)
    run_id = payload.pop("run_id")
    # Without the table version in its own column: that one is of events derived from commits.
    return Event(kind=PROFILE, dataset=dataset, partition=one.profile.period, run_id=run_id, payload=payload)


def observations(events: EventLog, dataset: str) -> list[Observation]:
    """Read the observations of a dataset back, oldest look first; of each period only the newest look."""
    return newest_of_each(_observation(event) for event in events.notes(PROFILE, dataset=dataset))


def newest_of_each(found: Iterable[Observation]) -> list[Observation]:
    newest: dict[str, Observation] = {}
    for one in found:
        # A table that is written whole has one period, of which every look is kept to compare with.
        key = one.profile.period or f"version {one.profile.version}"
        newest.pop(key, None)
        newest[key] = one
    return list(newest.values())


def of_rows_there(
    seen: Iterable[Observation], published: Mapping[str, Entry], grain: Grain | None
) -> list[Observation]:
    """Keep the observations of periods that have rows; where all have expired or were lost, nothing stands."""
    there = {period_of(partition, grain) for partition, entry in kept(published).items() if entry.rows_out}
    return [one for one in seen if one.profile.period in there]


def of_newest_period(seen: Iterable[Observation]) -> Observation | None:
    return max(seen, key=_time, default=None)


def standing_drifts(seen: Sequence[Observation]) -> list[Drift]:
    """List the drifts of the newest look, and of the newest period: they stand until newer rows are looked at."""
    newest = of_newest_period(seen)
    standing = [one for one in seen if one.run_id == seen[-1].run_id or one is newest]
    return [drift for one in sorted(standing, key=_time) for drift in one.drifts]


def standing_orphans(seen: Iterable[Observation]) -> dict[str, dict[str, int]]:
    """Count the rows whose reference does not exist: referenced dataset to period to rows, without zeros."""
    newest = {one.profile.period: one.orphans for one in seen}
    found: dict[str, dict[str, int]] = {}
    for period, orphans in sorted(newest.items()):
        for above, rows in orphans.items():
            if rows:
                found.setdefault(above, {})[period] = rows
    return dict(sorted(found.items()))


def _time(one: Observation) -> tuple[str, int]:
    return one.profile.period, one.profile.version


def _observation(event: Event) -> Observation:
    payload = event.payload or {}
    profile = payload["profile"]
    columns = {name: ColumnProfile(**values) for name, values in profile["columns"].items()}
    return Observation(
        profile=Profile(**{**profile, "columns": columns}),
        drifts=[Drift(**each) for each in payload["drifts"]],
        orphans=payload["orphans"],
        run_id=event.run_id or "",
    )
