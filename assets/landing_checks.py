"""The checks of the landing zone: what is due has come, and is complete.

They belong to the external assets of the landing zone. No run materializes these, so Dagster never takes an evaluation
for older than the data, and the newest one is what its pages show: the sensor `overdue` makes one when something has
changed, and a person can execute them at any time.
"""

from datetime import datetime, timezone

import dagster as dg

from assets.arrivals import LANDED, WATCHED, Arrivals, Overdue
from orchestration.step import LakeAccess
from publish.contract import Contract
from quality.contracts import CONTRACTS

OVERDUE = "overdue"


def key_of(dataset: str) -> dg.AssetCheckKey:
    """Give the key of the check on what has landed for a dataset."""
    return dg.AssetCheckKey(dg.AssetKey(["landing", LANDED[dataset][0]]), OVERDUE)


def evaluation(dataset: str, found: Overdue) -> dg.AssetCheckEvaluation:
    """Word what is overdue as an evaluation of the check.

    Args:
        dataset: What is made from the landed table.
        found: What is overdue of it.
    """
    key = key_of(dataset)
    return dg.AssetCheckEvaluation(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=found.told is None,
        severity=dg.AssetCheckSeverity.WARN,
        description=found.told,
        metadata={OVERDUE: len(found.keys), **{why: list(keys) for why, keys in found.without.items()}},
    )


def _check(dataset: str, contract: Contract) -> dg.AssetChecksDefinition:
    key = key_of(dataset)

    @dg.asset_check(
        asset=key.asset_key,
        name=key.name,
        description=f"What is due {contract.freshness_hours:g} h after its end has come, and is complete (warning)",
        required_resource_keys={"lake"},
    )
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        access: LakeAccess = context.resources.lake
        found = Arrivals.of(dataset, access.landing_zone).overdue(access.events, datetime.now(timezone.utc))
        made = evaluation(dataset, found)
        return dg.AssetCheckResult(
            passed=made.passed, severity=made.severity, description=made.description, metadata=made.metadata
        )

    return check


CHECKS = tuple(_check(dataset, CONTRACTS[dataset]) for dataset in WATCHED)
