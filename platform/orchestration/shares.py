"""Checks on shares: too many dead letters stop what comes after them, and a filter that jumps is pointed out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg

from orchestration.step import Step
from patterns.core.commit import Commit, Entry
from patterns.core.contract import Contract
from patterns.error_management import dead_letter, filter_interceptor

SHARE = "share"
FILTERS = "filters"
LEAST_ROWS = 100
"""Of fewer rows a share says nothing: one bad line in a quiet hour is no reason to stop. Quiet partitions are judged
together, with as many before them as make so many rows."""
PAST = 168
"""Partitions that a filter's share is compared with: a week of hours, so that each hour of the day is among them."""
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
    judged = {part: [entry] for part, entry in commit.entries.items() if entry.rows_in >= LEAST_ROWS}
    if quiet := sorted(set(commit.entries) - set(judged)):
        judged.update(_together(quiet, {**step.events.publications(commit.dataset), **commit.entries}))
    faults = [
        dead_letter.exceeds(
            rejected_rows=sum(entry.rows_out for entry in entries),
            rows=sum(entry.rows_in for entry in entries),
            max_share=max_share,
            dataset=commit.dataset,
            part=part,
            then="run it again: it goes on without them",
        )
        for part, entries in judged.items()
    ]
    found = [fault for fault in faults if fault is not None]
    return dg.AssetCheckResult(
        check_name=SHARE,
        asset_key=key,
        passed=not found,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"{found[0].where}: {found[0].what}; {found[0].next_step}" if found else None,
        metadata={
            "partitions": len(found),
            "rows": commit.rows_out,
            "rows_above": sum(entry.rows_in for entry in commit.entries.values()),
        },
    )


def _together(quiet: Sequence[str], published: Mapping[str, Entry]) -> dict[str, list[Entry]]:
    """Give quiet partitions as one part, with those before them until there are rows enough to be judged."""
    taken: list[str] = []
    for partition in sorted((one for one in published if one <= quiet[-1]), reverse=True):
        if published[partition].rows_in < LEAST_ROWS:
            taken.append(partition)
        if partition <= quiet[0] and sum(published[one].rows_in for one in taken) >= LEAST_ROWS:
            return {f"{taken[-1]}..{taken[0]}": [published[one] for one in taken]}
    return {}


def _filters(key: dg.AssetKey, step: Step, commit: Commit) -> dg.AssetCheckResult:
    published = step.events.publications(commit.dataset)
    past = [published[partition] for partition in sorted(set(published) - set(commit.entries))][-PAST:]
    now = filter_shares(commit.entries)
    history = [filter_shares({entry.partition: entry}) for entry in past if entry.rows_in >= LEAST_ROWS]
    enough = sum(entry.rows_in for entry in commit.entries.values()) >= LEAST_ROWS
    readings = filter_interceptor.jump(history, now) if enough else []
    jumped = [reading for reading in readings if reading.jumped]
    return dg.AssetCheckResult(
        check_name=FILTERS,
        asset_key=key,
        passed=not jumped,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(
            f"'{reading.name}' removed {reading.share:.1%} of the rows, usual are {reading.expected:.1%}"
            for reading in jumped
        )
        or None,
        metadata={"shares": now, "compared_with": len(history)},
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
