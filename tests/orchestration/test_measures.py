"""Online Observer: a measure far from its own history gives a warning and stops nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import dagster as dg

from blogdata.lake.commit import Commit, Entry
from blogdata.orchestration.shares import measure_results
from quality.contracts import CONTRACTS

KEY = dg.AssetKey(["silver", "visits"])
VISITS = CONTRACTS["silver.visits"]


def hour(number: int, rows: int = 1600, **measures: float | None) -> Entry:
    usual = {
        "null_share.referral": 0.34 + number % 5 / 100,
        "null_share.ad_id": 0.92 - number % 3 / 100,
        "private": rows // 10,
    }
    return Entry(
        dataset="silver.visits",
        partition=f"2026-01-{5 + number // 24:02d}T{number % 24:02d}",
        version=number,
        rows_in=rows,
        rows_out=rows,
        reasons={},
        measures={**usual, **{name.replace("__", "."): value for name, value in measures.items()}},
    )


def judged(past: list[Entry], *now: Entry) -> Any:
    held = {entry.partition: entry for entry in (*past, *now)}
    step = SimpleNamespace(
        events=SimpleNamespace(publications=lambda dataset, since: {key: held[key] for key in held if key >= since})
    )
    commit = Commit(dataset="silver.visits", version=99, entries={entry.partition: entry for entry in now}, info={})
    (result,) = measure_results(KEY, VISITS, step, commit)  # type: ignore[arg-type]
    return result


WEEK = [hour(number) for number in range(168)]


def test_usual_measures_give_no_warning() -> None:
    result = judged(WEEK, hour(168), hour(169))
    assert (result.passed, result.description, result.metadata["partitions"].value) == (True, None, 0)


def test_a_jumping_measure_warns_with_both_figures() -> None:
    result = judged(WEEK, hour(168), hour(169, null_share__referral=1.0))
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert result.description == "2026-01-12T01: null_share.referral is 100.0% of the rows, usual is 36.0%"
    (row,) = result.metadata["jumps"].records
    assert row.data == {
        "partition": "2026-01-12T01",
        "measure": "null_share.referral",
        "found": "100.0%",
        "usual": "36.0%",
    }
