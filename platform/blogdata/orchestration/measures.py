"""The check `measures` of an Online Observer: warns of jumps in null shares and distinct counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice

import dagster as dg

from blogdata.evidence.appended import appended
from blogdata.lake.commit import Commit
from blogdata.orchestration.shares import grain_of, jump_result, with_history
from blogdata.orchestration.step import Step
from blogdata.patterns.quality.jumps import Jump, jumps
from blogdata.patterns.quality.online_observer import DISTINCT, observed_measures, series, windows
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain
from blogdata.publish.writes import Append

MEASURES = "measures"
MOST_BATCHES = 1000
"""How many of the newest batches of a stream are read back."""
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
    """Compare the measures of a publication with those of earlier partitions; of a stream with earlier batches."""
    names = observed_measures(contract)
    if not names:
        return []
    found = (
        _of_batches(names, step)
        if isinstance(contract.write, Append)
        else _of_partitions(names, contract, step, commit)
    )
    return [
        jump_result(
            MEASURES,
            key,
            found,
            lambda jump: f"{jump.name} is {jump.found:.1%} of the rows, usual is {jump.usual:.1%}",
        )
    ]


def _of_partitions(names: Sequence[str], contract: Contract, step: Step, commit: Commit) -> list[Jump]:
    published = with_history(contract, step, commit)
    return [
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


def _of_batches(names: Sequence[str], step: Step) -> list[Jump]:
    """Judge the windows that end with a batch of this run."""
    commits = list(islice(appended(step.lake, step.contract.dataset), MOST_BATCHES))
    new = {f"{commit.version:010d}" for commit in commits if commit.info["run"]["run_id"] == step.run.run_id}
    # The distinct values of a batch say nothing about those of a window.
    shares = [name for name in names if not name.startswith(f"{DISTINCT}.")]
    return [jump for name in shares for jump in jumps(name, windows(commits, name), new, grain=Grain.HOUR)]
