"""The check `complete` of an Aligned Fan-In: warns of periods that were computed without some of their hours.

Dagster shows only the newest evaluation of a check. Each evaluation therefore covers all published periods, not only
those just written: otherwise a run of another day would hide that an earlier day lacks hours. There is no warning for
the newest period, for final ones, for those without a row, and for those before the first delivery, which have late
rows only.
"""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from blogdata.evidence.events import EventLog
from blogdata.lake.commit import Entry
from blogdata.planning.clock import lookback_of, newest_ended
from blogdata.publish.contract import Contract

COMPLETE = "complete"
PARTS = "parts"
"""Name of the measure that counts the hours a period was computed from; null for a period without rows."""
EXPECTED = "parts_expected"
"""Name of the measure that counts the hours a period should have had; without it, they are the contract's `parts`."""
_SHOWN = 3


def complete_specs(key: dg.AssetKey, contract: Contract) -> list[dg.AssetCheckSpec]:
    """Return the check spec of an asset whose periods are computed from hours; empty for other assets."""
    description = "Every published period before the newest, and not final, has all of its hours (warning)"
    return [] if contract.parts is None else [dg.AssetCheckSpec(COMPLETE, asset=key, description=description)]


def complete_results(key: dg.AssetKey, contract: Contract, events: EventLog) -> list[dg.AssetCheckResult]:
    """Warn of published periods before the newest one that lack hours."""
    if contract.parts is None or contract.grain is None:
        return []
    published = events.publications(contract.dataset)
    short = lacking_hours(contract, published)
    newest = max(published, default="")
    ended = {period: hours for period, hours in short.items() if period < newest}
    lacking = [f"{period} has {hours} hours" for period, hours in sorted(ended.items(), reverse=True)]
    more = [f"{len(lacking) - _SHOWN} more lack hours"] if len(lacking) > _SHOWN else []
    so_far = [f"{period} has {hours} hours so far" for period, hours in sorted(short.items()) if period not in ended]
    return [
        dg.AssetCheckResult(
            check_name=COMPLETE,
            asset_key=key,
            passed=not ended,
            severity=dg.AssetCheckSeverity.WARN,
            description="; ".join([*lacking[:_SHOWN], *more, *so_far]) or None,
            metadata={"periods_lacking_hours": len(ended), **({"by_period": ended} if ended else {})},
        )
    ]


def lacking_hours(contract: Contract, published: Mapping[str, Entry]) -> dict[str, str]:
    """Find the published periods that lack hours and are not final, each with its count, such as `23 of 24`."""
    assert contract.parts is not None
    assert contract.partitioning is not None
    grain = contract.partitioning.grain
    counted = {period: entry.measures.get(PARTS) for period, entry in published.items()}
    present = {period: int(parts) for period, parts in counted.items() if parts is not None}
    expected = {period: int(published[period].measures.get(EXPECTED) or contract.parts) for period in present}
    short = {period: f"{hours} of {expected[period]}" for period, hours in present.items() if hours < expected[period]}
    last, lookback = newest_ended(max(published, default=""), grain), lookback_of(contract)
    first = min((period for period, hours in present.items() if hours), default="")
    return {
        period: hours
        for period, hours in short.items()
        if period > last or (first <= period and not (lookback and lookback.is_final(period, last)))
    }
