"""Converts a contract's freshness promise to a Dagster freshness policy."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg

from blogdata.publish.contract import Contract


def freshness_of(contract: Contract) -> dg.FreshnessPolicy | None:
    """Return the freshness policy of a dataset; None if its contract promises nothing.

    The policy fails if nothing was published for one partition length (whole table: 1 day) plus `freshness_hours`.
    """
    if contract.freshness_hours is None:
        return None
    due = timedelta(hours=contract.freshness_hours)
    between = contract.grain.length if contract.grain is not None else timedelta(days=1)
    return dg.FreshnessPolicy.time_window(fail_window=between + due)
