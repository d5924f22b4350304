"""Estimates the rows and seconds of a run from earlier publications of the same datasets."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from statistics import median

from blogdata.lake.commit import WHOLE_TABLE
from blogdata.planning.plan import Planned
from blogdata.publish.contract import Look


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Rows and seconds of a computation; None without earlier publications."""

    rows: int | None
    seconds: float | None


def estimate(look: Look, run: Planned) -> Estimate:
    """Estimate a computation; both figures are None if one of its datasets has never been published."""
    estimates = [_of_one(look, dataset, run.keys or (WHOLE_TABLE,)) for dataset in run.datasets]
    rows = [each.rows for each in estimates if each.rows is not None]
    seconds = [each.seconds for each in estimates if each.seconds is not None]
    known = len(rows) == len(seconds) == len(estimates)
    return Estimate(rows=sum(rows) if known else None, seconds=sum(seconds) if known else None)


def _of_one(look: Look, dataset: str, keys: Collection[str]) -> Estimate:
    history = look.history(dataset)
    if not history:
        return Estimate(rows=None, seconds=None)
    newest = {entry.partition: entry.rows_out for entry in history}
    usual = int(median(newest.values()))
    rows = sum(newest.get(key, usual) for key in keys)
    seconds = {entry.version: entry.seconds for entry in history}
    # Seconds of a commit = a fixed cost + a cost per row.
    least = min(seconds.values())
    written = sum(entry.rows_out for entry in history)
    per_row = sum(each - least for each in seconds.values()) / written if written else 0.0
    return Estimate(rows=rows, seconds=least + per_row * rows)
