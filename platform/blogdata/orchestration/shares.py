"""Checks on shares: too many dead letters block downstream; a jump of a filter or an observed measure only warns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg

from blogdata.lake.commit import Commit, Entry
from blogdata.orchestration.run_values import table
from blogdata.orchestration.step import Step
from blogdata.patterns.error_management import filter_interceptor
from blogdata.patterns.quality import online_observer
from blogdata.patterns.quality.online_observer import Jump, jumps
from blogdata.planning.staleness import DEAD_LETTERS, dead_letter_error
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, key_of, start_of

SHARE, FILTERS, MEASURES = "share", "filters", "measures"
_SHOWN = 3
_LISTED = 100
_LOOK_BACK = 4 * online_observer.PAST
"""How many partitions back to read: more than are compared, since some are missing or have too few rows."""


def share_results(key: dg.AssetKey, contract: Contract, step: Step, commit: Commit) -> list[dg.AssetCheckResult]:
    results = []
    if contract.max_share is not None:
        results.append(_share(key, contract, step, commit))
    if is_filtered(contract):
        results.append(_filters(key, contract, step, commit))
    return results


def is_filtered(contract: Contract) -> bool:
    return any(reason.startswith(filter_interceptor.REASON) for reason in contract.left_out)


def _share(key: dg.AssetKey, contract: Contract, step: Step, commit: Commit) -> dg.AssetCheckResult:
    published = {**step.events.publications(commit.dataset), **commit.entries}
    letters = {part: (entry.rows_out, entry.rows_in) for part, entry in published.items()}
    faults = [dead_letter_error(contract, part, letters) for part in sorted(commit.entries)]
    found = [fault for fault in faults if fault is not None]
    return dg.AssetCheckResult(
        check_name=SHARE,
        asset_key=key,
        passed=not found or DEAD_LETTERS in step.accepted,
        description=f"{found[0].where}: {found[0].what}; {found[0].next_step}" if found else None,
        metadata={
            "partitions": len(found),
            "rows": commit.rows_out,
            "rows_above": sum(entry.rows_in for entry in commit.entries.values()),
        },
    )


def _filters(key: dg.AssetKey, contract: Contract, step: Step, commit: Commit) -> dg.AssetCheckResult:
    published, grain = _with_history(contract, step, commit)
    reasons = {reason for entry in published.values() for reason in entry.reasons}
    found = [
        jump
        for reason in sorted(reasons)
        if (name := reason.removeprefix(filter_interceptor.REASON)) != reason
        for jump in jumps(name, online_observer.rates(published, reason), commit.entries, grain=grain)
    ]
    shares = {"shares": filter_interceptor.shares(commit.entries)}
    text = "'{0.name}' removed {0.found:.1%} of the rows, usual are {0.usual:.1%}"
    return _jump_result(FILTERS, key, found, text, shares)


def measure_results(key: dg.AssetKey, contract: Contract, step: Step, commit: Commit) -> list[dg.AssetCheckResult]:
    names = online_observer.observed_measures(contract)
    if not names:
        return []
    published, grain = _with_history(contract, step, commit)
    found = [
        jump
        for name in names
        for jump in jumps(name, online_observer.series(published, name), commit.entries, grain=grain)
    ]
    return [_jump_result(MEASURES, key, found, "{0.name} is {0.found:.1%} of the rows, usual is {0.usual:.1%}", {})]


def _with_history(contract: Contract, step: Step, commit: Commit) -> tuple[dict[str, Entry], Grain]:
    """Return a commit's entries together with earlier publications to compare them with; a whole table has none."""
    if contract.grain is None or not commit.entries:
        return dict(commit.entries), contract.grain or Grain.HOUR
    since = key_of(start_of(min(commit.entries), contract.grain) - _LOOK_BACK * contract.grain.length, contract.grain)
    return {**step.events.publications(commit.dataset, since=since), **commit.entries}, contract.grain


def _jump_result(
    name: str, key: dg.AssetKey, found: Sequence[Jump], text: str, metadata: dict[str, Any]
) -> dg.AssetCheckResult:
    """Return a check result that warns of jumps: the first 3 in the description, the first 100 in a table."""
    ordered = sorted(found, key=lambda jump: (jump.partition, jump.name))
    shown = [f"{jump.partition}: {text.format(jump)}" for jump in ordered[:_SHOWN]]
    rows = [
        {"partition": jump.partition, "measure": jump.name, "found": f"{jump.found:.1%}", "usual": f"{jump.usual:.1%}"}
        for jump in ordered[:_LISTED]
    ]
    return dg.AssetCheckResult(
        check_name=name,
        asset_key=key,
        passed=not ordered,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(shown + ["\N{HORIZONTAL ELLIPSIS}"] * (len(ordered) > _SHOWN)) or None,
        metadata={**metadata, "partitions": len({jump.partition for jump in ordered}), **table("jumps", rows)},
    )
