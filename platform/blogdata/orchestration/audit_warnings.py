"""The check `audits`: warns of what was published although it failed an audit that only warns, or that was lifted."""

from __future__ import annotations

import dagster as dg

from blogdata.lake.commit import Commit
from blogdata.publish.audit import warnings
from blogdata.publish.contract import Contract

AUDITS = "audits"
_NAMED = 5


def audit_warning_specs(key: dg.AssetKey, contract: Contract) -> list[dg.AssetCheckSpec]:
    """Return the check spec of a dataset with audits; empty for other datasets."""
    if not contract.audits:
        return []
    return [
        dg.AssetCheckSpec(
            AUDITS,
            asset=key,
            description="No partition was published with a failed audit (warning): "
            + "; ".join(f"{audit.name}: {audit.description}" for audit in contract.audits),
        )
    ]


def audit_warning_results(key: dg.AssetKey, contract: Contract, commit: Commit) -> list[dg.AssetCheckResult]:
    """Report the failed audits of a publication."""
    if not contract.audits:
        return []
    failed = {part: names for part, entry in sorted(commit.entries.items()) if (names := warnings(entry))}
    lifted = commit.info.get("lifted", [])
    named = "; ".join(f"{part or 'the table'}: {', '.join(names)}" for part, names in list(failed.items())[:_NAMED])
    return [
        dg.AssetCheckResult(
            check_name=AUDITS,
            asset_key=key,
            passed=not failed,
            severity=dg.AssetCheckSeverity.WARN,
            description=f"published all the same: {named}" if failed else None,
            metadata={"partitions": len(failed), **({"lifted_by_a_person": lifted} if lifted else {})},
        )
    ]
