"""Checks on shares: too many dead letters stop what comes after them, and a filter that jumps is pointed out."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from orchestration.step import Step
from patterns.core.commit import Commit, Entry
from patterns.core.contract import Contract
from patterns.error_management import dead_letter, filter_interceptor

SHARE = "share"
DEAD_LETTERS = "dead_letters"
"""The guard that a person lifts to go on without what was rejected."""
GOES_ON = f"land the hour again; or go on without them: blogdata run --accept {DEAD_LETTERS}"
"""What to do about too many dead letters."""
FILTERS = "filters"
PAST = 168
"""Partitions before it that a filter's share is compared with: a week of hours, each of the day among them."""
_TOLD = 3
FILTERED = "filtered."


def share_specs(key: dg.AssetKey, contract: Contract) -> list[dg.AssetCheckSpec]:
    """Give the checks on shares that a contract asks for."""
    specs = []
    if contract.max_share is not None:
        specs.append(
            dg.AssetCheckSpec(
                SHARE,
                asset=key,
                blocking=True,
                description=f"At most {contract.max_share:.0%} of a partition's rows end here; more is no accident",
            )
        )
    if _is_filtered(contract):
        specs.append(
            dg.AssetCheckSpec(
                FILTERS,
                asset=key,
                description="Each filter removes about the share it has removed before (warning)",
            )
        )
    return specs


def share_results(key: dg.AssetKey, contract: Contract, step: Step, commit: Commit) -> list[dg.AssetCheckResult]:
    """Judge the shares of a publication."""
    results = []
    if contract.max_share is not None:
        results.append(_share(key, contract.max_share, step, commit))
    if _is_filtered(contract):
        results.append(_filters(key, step, commit))
    return results


def _is_filtered(contract: Contract) -> bool:
    return "Filter Interceptor" in contract.patterns


def _share(key: dg.AssetKey, max_share: float, step: Step, commit: Commit) -> dg.AssetCheckResult:
    published = {**step.events.publications(commit.dataset), **commit.entries}
    letters = {part: (entry.rows_out, entry.rows_in) for part, entry in published.items()}
    faults = [
        dead_letter.too_many(part, letters, max_share=max_share, dataset=commit.dataset, then=GOES_ON)
        for part in sorted(commit.entries)
    ]
    found = [fault for fault in faults if fault is not None]
    return dg.AssetCheckResult(
        check_name=SHARE,
        asset_key=key,
        passed=not found or DEAD_LETTERS in step.accepted,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"{found[0].where}: {found[0].what}; {found[0].next_step}" if found else None,
        metadata={
            "partitions": len(found),
            "rows": commit.rows_out,
            "rows_above": sum(entry.rows_in for entry in commit.entries.values()),
        },
    )


def _filters(key: dg.AssetKey, step: Step, commit: Commit) -> dg.AssetCheckResult:
    published = {**step.events.publications(commit.dataset), **commit.entries}
    enough = sorted(part for part, entry in published.items() if entry.rows_in >= dead_letter.LEAST_ROWS)
    shares = {part: filter_shares({part: published[part]}) for part in enough}
    jumped = []
    for place, part in enumerate(enough):
        if part in commit.entries:
            history = [shares[one] for one in enough[max(place - PAST, 0) : place]]
            jumped += [(part, reading) for reading in filter_interceptor.jump(history, shares[part]) if reading.jumped]
    told = [
        f"{part}: '{reading.name}' removed {reading.share:.1%} of the rows, usual are {reading.expected:.1%}"
        for part, reading in jumped[:_TOLD]
    ]
    return dg.AssetCheckResult(
        check_name=FILTERS,
        asset_key=key,
        passed=not jumped,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(told + ["\N{HORIZONTAL ELLIPSIS}"] * (len(jumped) > _TOLD)) or None,
        metadata={
            "shares": filter_shares(commit.entries),
            "partitions": len({part for part, _ in jumped}),
        },
    )


def filter_shares(entries: Mapping[str, Entry]) -> dict[str, float]:
    """Give the share of the rows above that each filter removed.

    Args:
        entries: Ledger lines by partition.

    Returns:
        Filter to share, 0 to 1; empty when there were no rows.
    """
    rows = sum(entry.rows_in for entry in entries.values())
    removed: dict[str, int] = {}
    for entry in entries.values():
        for reason, count in entry.reasons.items():
            if reason.startswith(FILTERED):
                name = reason.removeprefix(FILTERED)
                removed[name] = removed.get(name, 0) + count
    return {name: count / rows for name, count in sorted(removed.items())} if rows else {}
