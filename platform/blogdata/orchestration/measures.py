"""The check `measures` of an Online Observer: warns of jumps in null shares and distinct counts."""

from __future__ import annotations

import math

import dagster as dg

from blogdata.lake.commit import Commit
from blogdata.orchestration.shares import grain_of, jump_result, with_history
from blogdata.orchestration.step import Step
from blogdata.patterns.quality.jumps import jumps
from blogdata.patterns.quality.online_observer import DISTINCT, observed_measures, series
from blogdata.publish.contract import Contract

MEASURES = "measures"
MAX_ROW_RATIO = 2.0
"""Distinct counts grow slower than rows: compare only partitions whose row counts differ at most by this factor."""


def measure_specs(key: dg.AssetKey, contract: Contract) -> list[dg.AssetCheckSpec]:
    """Return the check spec of a dataset that an observer measures; empty for other datasets."""
    if not observed_measures(contract):
        return []
    return [
        dg.AssetCheckSpec(
            MEASURES,
            asset=key,
            description="Shares of nulls, and distinct values by row, are about what they were before (warning)",
        )
    ]


def measure_results(key: dg.AssetKey, contract: Contract, step: Step, commit: Commit) -> list[dg.AssetCheckResult]:
    """Compare the measures of a publication with those of earlier partitions."""
    names = observed_measures(contract)
    if not names:
        return []
    published = with_history(contract, step, commit)
    found = [
        jump
        for name in names
        for jump in jumps(
            name,
            series(published, name),
            commit.entries,
            grain=grain_of(contract),
            max_row_ratio=MAX_ROW_RATIO if name.startswith(f"{DISTINCT}.") else math.inf,
        )
    ]
    return [
        jump_result(
            MEASURES,
            key,
            found,
            lambda jump: f"{jump.name} is {jump.found:.1%} of the rows, usual is {jump.usual:.1%}",
        )
    ]
