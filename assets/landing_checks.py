"""Asset checks of the landing zone: due partitions have landed and are complete.

They belong to the external assets of the landing zone. No run materializes these assets, so Dagster never considers an
evaluation older than the data, and its pages show the newest one. The sensor `overdue` reports an evaluation when the
result has changed; a person can execute the checks at any time.
"""

from datetime import datetime, timezone

import dagster as dg

from blogdata.orchestration.lake_resource import LakeResource
from blogdata.planning.arrivals import Arrivals, Overdue
from blogdata.planning.reach import landed_input
from blogdata.publish.contract import Contract
from quality.contracts import LANDED

OVERDUE = "overdue"


def overdue_check_key(contract: Contract) -> dg.AssetCheckKey:
    """Return the key of the check on a dataset's landed table."""
    landed = landed_input(contract)
    assert landed is not None, f"{contract.dataset} reads nothing that lands"
    return dg.AssetCheckKey(dg.AssetKey(["landing", landed.table]), OVERDUE)


def overdue_evaluation(contract: Contract, found: Overdue) -> dg.AssetCheckEvaluation:
    """Build the evaluation of the check from the overdue partitions."""
    key = overdue_check_key(contract)
    return dg.AssetCheckEvaluation(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=found.warning is None,
        severity=dg.AssetCheckSeverity.WARN,
        description=found.warning,
        metadata={OVERDUE: len(found.keys), **{why: list(keys) for why, keys in found.without.items()}},
    )


def _check(contract: Contract) -> dg.AssetChecksDefinition:
    key = overdue_check_key(contract)

    @dg.asset_check(
        asset=key.asset_key,
        name=key.name,
        description=f"What is due {contract.freshness_hours:g} h after its end has come, and is complete (warning)",
        required_resource_keys={"lake"},
    )
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        access: LakeResource = context.resources.lake
        found = Arrivals.of(contract, access.landing_zone).overdue(access.events, datetime.now(timezone.utc))
        made = overdue_evaluation(contract, found)
        return dg.AssetCheckResult(
            passed=made.passed, severity=made.severity, description=made.description, metadata=made.metadata
        )

    return check


CHECKS = tuple(map(_check, LANDED.values()))
