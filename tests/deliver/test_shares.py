"""Filter Interceptor: a filter that removes a far larger share than before gives a warning and stops nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from blogdata.contract.publication import Commit, Entry
from blogdata.runs.checks import share_results
from quality.contracts import CONTRACTS

VISITS = CONTRACTS["silver.visits"]


def hour(number: int, crawlers: int, rows: int = 1000) -> Entry:
    # As in a commit: a filter that removed nothing is not among the reasons.
    reasons = {**({"filtered.crawler": crawlers} if crawlers else {}), "duplicates": 0}
    key = f"2026-01-{5 + number // 24:02d}T{number % 24:02d}"
    out = rows - crawlers
    return Entry(dataset=VISITS.dataset, partition=key, version=number, rows_in=rows, rows_out=out, reasons=reasons)


def judged(past: Sequence[Entry], *now: Entry, check: int = 0) -> Any:
    history = {entry.partition: entry for entry in (*past, *now)}
    events = SimpleNamespace(publications=lambda dataset, since=None: history)
    commit = Commit(dataset=VISITS.dataset, version=99, entries={entry.partition: entry for entry in now}, info={})
    step: Any = SimpleNamespace(events=events)
    return [*share_results(VISITS, step, commit)][check]


QUIET = [hour(number, 180 + number % 40) for number in range(168)]


@pytest.mark.parametrize("crawlers", [0, 700])
def test_a_jumping_filter_warns_with_both_shares(crawlers: int) -> None:
    result = judged(QUIET, hour(168, crawlers))
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    expected = f"2026-01-12T00: 'crawler' removed {crawlers / 1000:.1%} of the rows, usual are 19.9%"
    assert result.description == expected


def test_a_jumping_measure_warns_with_both_figures() -> None:
    def measured(number: int, share: float) -> Entry:
        return replace(hour(number, 0), measures={"null_share.referral": share, "null_share.ad_id": 0.9})

    result = judged([measured(n, 0.34 + n % 5 / 100) for n in range(168)], measured(168, 1.0), check=1)
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert result.description == "2026-01-12T00: null_share.referral is 100.0% of the rows, usual is 36.0%"


def test_each_hour_is_compared_with_those_before_it() -> None:
    later = [hour(number, 190) for number in range(168, 192)]
    result = judged(QUIET, *later[:10], hour(178, 1000), *later[11:])
    assert result.description.startswith("2026-01-12T10: 'crawler' removed 100.0%")
    assert (result.passed, result.metadata["partitions"].value) == (False, 1)
    assert judged(QUIET, hour(168, 200)).passed
    # A backfilled hour is compared with the hours before it, when twice as much was removed.
    before = [hour(number, 400) for number in range(168)]
    assert judged([*before, *[hour(number, 100) for number in range(169, 240)]], hour(168, 400)).passed
