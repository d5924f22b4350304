"""ops.profiles: what is new in the observed datasets, profiled beside the hot path; drift and broken references."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Any

import dagster as dg
from pyspark.sql import DataFrame, SparkSession

from blogdata.contract.contract import Contract
from blogdata.contract.publication import kept
from blogdata.patterns.quality import constraints_enforcer, offline_observer
from blogdata.patterns.quality.offline_observer import Profile, standing_drifts
from blogdata.runs.computation import ops_asset
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.names import table
from blogdata.runs.retries import reported
from quality.contracts import EVERY

KEY = dg.AssetKey(["ops", "profiles"])
OBSERVED: Mapping[str, Contract] = MappingProxyType(
    {name: contract for name, contract in EVERY.items() if contract.profiled or contract.references}
)
DRIFT, REFERENCES = "drift", "references"
PERIODS_AT_ONCE = 31
"""How many periods one query profiles, so that a first look at years is no single giant one."""
_NAMED = 5


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
    looked: dict[str, tuple[list[Profile], list[Profile]]] = {}
    with reported(context), context.resources.spark.guard() as spark:
        looked |= {name: look(spark, access, contract, context.run.run_id) for name, contract in OBSERVED.items()}
    drifts = [
        {"dataset": name, **vars(drift)} for name, (_, every) in looked.items() for drift in standing_drifts(every)
    ]
    yield dg.MaterializeResult(
        metadata={
            "periods": sum(len(new) for new, _ in looked.values()),
            **table("profiled", [_row(name, *profiles) for name, profiles in looked.items()]),
            **table("drifts", drifts),
        },
        check_results=[result for name, profiles in looked.items() for result in _results(name, *profiles)],
    )


def _row(dataset: str, new: Sequence[Profile], every: Sequence[Profile]) -> dict[str, Any]:
    rows, orphans = sum(profile.rows for profile in new), sum(_broken(every).values())
    return {"dataset": dataset, "new_periods": len(new), "rows": rows, "refer_to_nothing": orphans}


def _broken(every: Sequence[Profile]) -> dict[str, int]:
    """Count the rows whose reference does not exist, in all periods, by the referenced dataset."""
    return {above: sum(rows.values()) for above, rows in offline_observer.standing_orphans(every).items()}


def look(
    spark: SparkSession, access: LakeResource, contract: Contract, run_id: str
) -> tuple[list[Profile], list[Profile]]:
    """Profile what is new of a dataset; return the new profiles, by time, and all that stand."""
    offline_observer.require_profilable(contract)
    name, new = contract.dataset, list[Profile]()
    published = access.events.publications(name)
    before = offline_observer.standing(access.events, contract, published)
    periods = iter(offline_observer.unseen(kept(published), before).items())
    version = access.lake.version(name)
    while version is not None and (some := dict(islice(periods, PERIODS_AT_ONCE))):
        frame = access.lake.read(spark, name, version)
        orphans = _orphans(spark, access, contract, frame, some)
        for profile in offline_observer.profile(frame, contract, some, version):
            drifted = offline_observer.drifts(profile, [*before, *new], contract)
            new.append(replace(profile, drifts=drifted, orphans=orphans.get(profile.period, {})))
    access.events.append([offline_observer.event_of(name, profile, run_id) for profile in new])
    return new, [*before, *new]


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


def _results(dataset: str, new: Sequence[Profile], every: Sequence[Profile]) -> Iterator[dg.AssetCheckResult]:
    contract, checks = OBSERVED[dataset], list[tuple[str, list[str], dg.AssetCheckSeverity]]()
    if contract.profiled:
        drifts = standing_drifts(every)[:_NAMED]
        named = [f"{drift.period}: {drift.column} ({drift.found:.2f} > {drift.limit:.2f})" for drift in drifts]
        checks.append((DRIFT, named, dg.AssetCheckSeverity.WARN))
    if contract.references:
        missing = [f"{rows:,} rows refer to nothing in {name}" for name, rows in _broken(every).items()]
        checks.append((REFERENCES, missing, dg.AssetCheckSeverity.ERROR))
    for check, problems, severity in checks:
        yield dg.AssetCheckResult(
            check_name=check_name(check, dataset),
            asset_key=KEY,
            passed=not problems,
            severity=severity,
            description="; ".join(problems) or None,
            metadata={"periods": len(new)},
        )
