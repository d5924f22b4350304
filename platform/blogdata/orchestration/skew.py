"""The check `skew` of a publication: warns of partitions with unusual volumes, or with keys that take too many rows."""

from __future__ import annotations

import dagster as dg

from blogdata.lake.commit import Commit
from blogdata.orchestration.step import Step
from blogdata.orchestration.volume import comparable_since
from blogdata.patterns.observability.reading import SKEW, first
from blogdata.planning import detectors
from blogdata.publish.contract import Contract

_LISTED = 100


def skew_specs(key: dg.AssetKey, contract: Contract) -> list[dg.AssetCheckSpec]:
    """Return the check spec of a dataset that watches its skew; empty for other datasets."""
    if contract.watch.skew is None:
        return []
    return [
        dg.AssetCheckSpec(
            SKEW,
            asset=key,
            description="Partitions have about as many rows as comparable ones before, and keys are as even (warning)",
        )
    ]


def skew_results(key: dg.AssetKey, contract: Contract, step: Step, commit: Commit) -> list[dg.AssetCheckResult]:
    """Compare a publication, and the newest day, with comparable earlier partitions, from the ledger.

    Dagster shows only the newest evaluation: a run of another day would otherwise hide what stands.
    """
    if contract.watch.skew is None or contract.grain is None or not commit.entries:
        return []
    since = comparable_since(commit.entries, contract.grain)
    published = {**step.events.publications(commit.dataset, since=since), **commit.entries}
    reading, found = detectors.skew(contract, published, commit.entries)
    skewed = [one for one in found if one.verdict]
    rows = [
        dg.TableRecord(
            {"partition": one.partition, "verdict": one.verdict, "found": one.found, "usual": round(one.usual, 2)}
        )
        for one in skewed[:_LISTED]
    ]
    return [
        dg.AssetCheckResult(
            check_name=SKEW,
            asset_key=key,
            passed=not skewed,
            severity=dg.AssetCheckSeverity.WARN,
            description=first([str(one) for one in skewed]) or (reading.what if not found else None),
            metadata={
                "partitions": len({one.partition for one in skewed}),
                "judged": len({one.partition for one in found}),
                **({"skewed": dg.MetadataValue.table(rows)} if rows else {}),
            },
        )
    ]
