"""Checks on shares: too many dead letters block downstream, and a jump in a filter's share is a warning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import dagster as dg

from blogdata.lake.commit import Commit, Entry
from blogdata.orchestration.step import Step
from blogdata.patterns.error_management import filter_interceptor
from blogdata.patterns.quality import jumps, online_observer
from blogdata.patterns.quality.jumps import Jump
from blogdata.planning.held import DEAD_LETTERS, dead_letter_error
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, key_of, start_of

SHARE = "share"
FILTERS = "filters"
_SHOWN = 3
_LISTED = 100
_LOOK_BACK = 4 * jumps.PAST
"""How many partitions back to read: more than are compared, since some are missing or have too few rows."""


def share_specs(key: dg.AssetKey, contract: Contract) -> list[dg.AssetCheckSpec]:
    """Return the specs of the share checks that a contract requires."""
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
    """Return the results of the share checks of a publication."""
    results = []
    if contract.max_share is not None:
        results.append(_share(key, contract, step, commit))
    if _is_filtered(contract):
        results.append(_filters(key, contract, step, commit))
    return results


def _is_filtered(contract: Contract) -> bool:
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
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"{found[0].where}: {found[0].what}; {found[0].next_step}" if found else None,
        metadata={
            "partitions": len(found),
            "rows": commit.rows_out,
            "rows_above": sum(entry.rows_in for entry in commit.entries.values()),
        },
    )


def _filters(key: dg.AssetKey, contract: Contract, step: Step, commit: Commit) -> dg.AssetCheckResult:
    published = with_history(contract, step, commit)
    reasons = sorted(
        {
            reason
            for entry in published.values()
            for reason in entry.reasons
            if reason.startswith(filter_interceptor.REASON)
        }
    )
    found = [
        jump
        for reason in reasons
        for jump in jumps.jumps(
            reason.removeprefix(filter_interceptor.REASON),
            online_observer.rates(published, reason),
            commit.entries,
            grain=grain_of(contract),
        )
    ]
    return jump_result(
        FILTERS,
        key,
        found,
        lambda jump: f"'{jump.name}' removed {jump.found:.1%} of the rows, usual are {jump.usual:.1%}",
        metadata={"shares": filter_interceptor.shares(commit.entries)},
    )


def with_history(contract: Contract, step: Step, commit: Commit) -> dict[str, Entry]:
    """Return a commit's entries together with earlier publications to compare them with.

    Returns:
        Partition to its newest publication, reaching back 4 * `jumps.PAST` partitions before the first new one.
    """
    if contract.partitioning is None or not commit.entries:
        return dict(commit.entries)
    grain = contract.partitioning.grain
    since = key_of(start_of(min(commit.entries), grain) - _LOOK_BACK * grain.length, grain)
    return {**step.events.publications(commit.dataset, since=since), **commit.entries}


def grain_of(contract: Contract) -> Grain:
    """Return the grain of a dataset's partitions; for a whole table any value will do, as it has no history."""
    return Grain.HOUR if contract.partitioning is None else contract.partitioning.grain


def jump_result(
    name: str,
    key: dg.AssetKey,
    found: Sequence[Jump],
    describe: Callable[[Jump], str],
    metadata: Mapping[str, dict[str, float]] | None = None,
) -> dg.AssetCheckResult:
    """Return a check result that warns of jumps: the first 3 in the description, the first 100 in a table."""
    ordered = sorted(found, key=lambda jump: (jump.partition, jump.name))
    shown = [f"{jump.partition}: {describe(jump)}" for jump in ordered[:_SHOWN]]
    rows = [
        dg.TableRecord(
            {
                "partition": jump.partition,
                "measure": jump.name,
                "found": f"{jump.found:.1%}",
                "usual": f"{jump.usual:.1%}",
            }
        )
        for jump in ordered[:_LISTED]
    ]
    return dg.AssetCheckResult(
        check_name=name,
        asset_key=key,
        passed=not ordered,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(shown + ["\N{HORIZONTAL ELLIPSIS}"] * (len(ordered) > _SHOWN)) or None,
        metadata={
            **(metadata or {}),
            "partitions": len({jump.partition for jump in ordered}),
            **({"jumps": dg.MetadataValue.table(rows)} if rows else {}),
        },
    )
