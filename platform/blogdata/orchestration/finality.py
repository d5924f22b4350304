"""The check `too_late` of a Static Late Data Integrator: counts rows that arrived after their partition was final."""

from __future__ import annotations

from collections import Counter

import dagster as dg

from blogdata.lake.commit import Commit
from blogdata.orchestration.step import Step
from blogdata.patterns.error_management import static_late_data_integrator
from blogdata.planning.finality import lookback_of, newest_ended
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, coarser

TOO_LATE = "too_late"


def finality_specs(key: dg.AssetKey, contract: Contract) -> list[dg.AssetCheckSpec]:
    """Return the check spec of a dataset whose partitions become final; empty for other datasets."""
    if lookback_of(contract) is None:
        return []
    return [
        dg.AssetCheckSpec(
            TOO_LATE,
            asset=key,
            description=f"No rows came for partitions older than the newest {contract.runs.lookback} (warning)",
        )
    ]


def finality_results(key: dg.AssetKey, contract: Contract, step: Step, commit: Commit) -> list[dg.AssetCheckResult]:
    """Count, for each final partition, the rows that arrived in its hours but were not integrated."""
    lookback = lookback_of(contract)
    if lookback is None:
        return []
    arrived: Counter[str] = Counter()
    for above in step.inputs:
        for hour, entry in step.events.publications(above).items():
            arrived[coarser(hour, Grain.HOUR, lookback.grain)] += entry.rows_out
    integrated = {period: entry.rows_in for period, entry in step.events.publications(contract.dataset).items()}
    newest = newest_ended(max([*arrived, *commit.entries]), lookback.grain)
    missed = static_late_data_integrator.too_late(arrived, integrated, newest, lookback)
    return [
        dg.AssetCheckResult(
            check_name=TOO_LATE,
            asset_key=key,
            passed=not missed,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"rows": sum(missed.values()), **({"by_partition": missed} if missed else {})},
            description=f"{sum(missed.values()):,} rows came after their partition was final" if missed else None,
        )
    ]
