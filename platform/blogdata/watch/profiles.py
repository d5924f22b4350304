"""ops.profiles: what is new in the observed datasets, profiled beside the hot path; drift and broken references."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import Any

import dagster as dg
from pyspark.sql import DataFrame, SparkSession

from blogdata.contract.contract import Contract
from blogdata.contract.publication import kept
from blogdata.patterns.quality import constraints_enforcer, offline_observer
from blogdata.patterns.quality.offline_observer import Drift, Profile, drifts
from blogdata.runs.computation import ops_asset
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.retries import reported
from blogdata.runs.run_values import table
from quality.contracts import EVERY

KEY = dg.AssetKey(["ops", "profiles"])
OBSERVED: Mapping[str, Contract] = MappingProxyType(
    {name: contract for name, contract in EVERY.items() if contract.profiled or contract.references}
)
DRIFT, REFERENCES = "drift", "references"
PERIODS_AT_ONCE = 31
"""How many periods one query profiles, so that a first look at years is no single giant one."""
_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class Looked:
    """The newly profiled periods, by time, and the drifts and orphans that stand since this look or earlier ones."""

    dataset: str
    profiles: Sequence[Profile]
    drifts: Sequence[Drift]
    orphans: Mapping[str, int]
    """Referenced dataset to the number of rows whose reference does not exist there, in all periods."""


def check_name(check: str, dataset: str) -> str:
    """Return the name of a dataset's check, such as `drift_silver_visits`."""
    return f"{check}_{dataset.replace('.', '_')}"


def _specs() -> Iterator[dg.AssetCheckSpec]:
    for name, contract in OBSERVED.items():
        if contract.profiled:
            text = f"The values of {', '.join(contract.profiled)} in {name} are distributed as in comparable"
            yield dg.AssetCheckSpec(check_name(DRIFT, name), asset=KEY, description=f"{text} periods before (warning)")
        if contract.references:
            text = ", ".join(reference.dataset for reference in contract.references)
            text = f"What the rows of {name} refer to exists in {text}"
            yield dg.AssetCheckSpec(check_name(REFERENCES, name), asset=KEY, description=text)


@ops_asset(
    description="Profiles of what was published since the last look: rows, distributions of values, and whether "
    "the rows that others refer to exist",
    kinds={"spark"},
    tags={"pattern/offline-observer": "", "pattern/constraints-enforcer": ""},
    check_specs=[*_specs()],
    required_resource_keys={"spark", "lake"},
)
def profiles(context: dg.AssetExecutionContext) -> Iterator[Any]:
    """Profile what is new, and report one check per dataset and kind."""
    access: LakeResource = context.resources.lake
    looked: list[Looked] = []
    with reported(context), context.resources.spark.guard() as spark:
        looked.extend(look(spark, access, contract, context.run.run_id) for contract in OBSERVED.values())
    yield dg.MaterializeResult(
        metadata={
            "periods": sum(len(seen.profiles) for seen in looked),
            **table("profiled", list(map(_row, looked))),
            **table("drifts", [{"dataset": seen.dataset, **vars(drift)} for seen in looked for drift in seen.drifts]),
        },
        check_results=[result for seen in looked for result in _results(seen)],
    )


def _row(seen: Looked) -> dict[str, Any]:
    rows, orphans = sum(profile.rows for profile in seen.profiles), sum(seen.orphans.values())
    return {"dataset": seen.dataset, "new_periods": len(seen.profiles), "rows": rows, "refer_to_nothing": orphans}


def look(spark: SparkSession, access: LakeResource, contract: Contract, run_id: str) -> Looked:
    offline_observer.require_profilable(contract)
    name, profiles = contract.dataset, list[Profile]()
    published = access.events.publications(name)
    before = offline_observer.standing(access.events, contract, published)
    periods = iter(offline_observer.unseen(kept(published), before, contract.grain).items())
    version = access.lake.version(name)
    while version is not None and (some := dict(islice(periods, PERIODS_AT_ONCE))):
        frame = access.lake.read(spark, name, version)
        orphans = _orphans(spark, access, contract, frame, some)
        for profile in offline_observer.profile(frame, contract, some, version):
            drifted = drifts(profile, [*before, *profiles], contract)
            profiles.append(replace(profile, drifts=drifted, orphans=orphans.get(profile.period, {})))
    access.events.append([offline_observer.event_of(name, profile, run_id) for profile in profiles])
    seen = [*before, *profiles]
    missing = offline_observer.standing_orphans(seen)
    return Looked(
        dataset=name,
        profiles=profiles,
        drifts=offline_observer.standing_drifts(seen),
        orphans={above: sum(rows.values()) for above, rows in missing.items()},
    )


def _orphans(
    spark: SparkSession,
    access: LakeResource,
    contract: Contract,
    frame: DataFrame,
    periods: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, int]]:
    """Count, for each period, the rows whose reference does not exist: period to referenced dataset to rows."""
    rows = offline_observer.within(frame, contract, periods)
    counts: dict[str, dict[str, int]] = {period: {} for period in periods}
    for reference in contract.references:
        # Compared with the newest state: a version of a user that a later delivery took back is an orphan, too, until
        # the rows that were joined with it are computed again.
        if access.lake.version(reference.dataset) is None:
            # A blog without users has no such table: every reference to it is broken.
            missing = rows.dropna(subset=list(reference.columns))
        else:
            referenced = access.lake.read(spark, reference.dataset)
            missing = constraints_enforcer.orphans(rows, referenced, reference.columns)
        for row in missing.groupBy(offline_observer.PERIOD).count().collect():
            counts[row[offline_observer.PERIOD]][reference.dataset] = row["count"]
    return counts


def _results(looked: Looked) -> Iterator[dg.AssetCheckResult]:
    contract = OBSERVED[looked.dataset]
    if contract.profiled:
        named = [f"{drift.period}: {drift.column} ({drift.found:.2f} > {drift.limit:.2f})" for drift in looked.drifts]
        yield _result(DRIFT, looked, named[:_NAMED], dg.AssetCheckSeverity.WARN)
    if contract.references:
        missing = [f"{rows:,} rows refer to nothing in {name}" for name, rows in looked.orphans.items()]
        yield _result(REFERENCES, looked, missing, dg.AssetCheckSeverity.ERROR)


def _result(
    check: str, looked: Looked, problems: Sequence[str], severity: dg.AssetCheckSeverity
) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=check_name(check, looked.dataset),
        asset_key=KEY,
        passed=not problems,
        severity=severity,
        description="; ".join(problems) or None,
        metadata={"periods": len(looked.profiles)},
    )
