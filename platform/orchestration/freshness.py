"""Turns a contract's promise of freshness into Dagster's own policy."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg

from publish.contract import Contract


def freshness_of(contract: Contract) -> dg.FreshnessPolicy | None:
    """Give the policy of a dataset that promises to be published so long after the end of a partition; None without."""
    if contract.freshness_hours is None:
        return None
    due = timedelta(hours=contract.freshness_hours)
    between = contract.grain.length if contract.grain is not None else timedelta(days=1)
    return dg.FreshnessPolicy.time_window(fail_window=between + due)
