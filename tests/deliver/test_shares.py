"""Filter Interceptor: a filter that removes a far larger share than before gives a warning and stops nothing."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from blogdata.contract.publication import Commit, Entry
from blogdata.planning.staleness import DEAD_LETTERS
from blogdata.runs.checks import share_results
from quality.contracts import CONTRACTS

VISITS = CONTRACTS["silver.visits"]
LETTERS = CONTRACTS["bronze.dead_letters"]


def hour(number: int, crawlers: int, rows: int = 1000) -> Entry:
    return Entry(
        dataset="silver.visits",
        partition=f"2026-01-{5 + number // 24:02d}T{number % 24:02d}",
        version=number,
        rows_in=rows,
        rows_out=rows - crawlers,
        measures={"null_share.referral": 0.3, "null_share.ad_id": 0.9},
        # As in a commit: a filter that removed nothing is not among the reasons.
        reasons={**({"filtered.crawler": crawlers} if crawlers else {}), "duplicates": 0},
    )


def judged(past: list[Entry], *now: Entry) -> Any:
    held = {entry.partition: entry for entry in (*past, *now)}
    step = SimpleNamespace(events=SimpleNamespace(publications=lambda dataset, since: held))
    commit = Commit(dataset="silver.visits", version=99, entries={entry.partition: entry for entry in now}, info={})
    result, _ = share_results(VISITS, step, commit)  # type: ignore[arg-type]
    return result


QUIET = [hour(number, 180 + number % 40) for number in range(168)]


@pytest.mark.parametrize("crawlers", [0, 700])
def test_a_jumping_filter_warns_with_both_shares(crawlers: int) -> None:
    result = judged(QUIET, hour(168, crawlers))
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    told = f"2026-01-12T00: 'crawler' removed {crawlers / 1000:.1%} of the rows, usual are 19.9%"
    assert result.description == told


def test_a_jumping_measure_warns_with_both_figures() -> None:
    def measured(number: int, share: float) -> Entry:
        return replace(hour(number, 0), measures={"null_share.referral": share, "null_share.ad_id": 0.9})

    held = {one.partition: one for one in [*(measured(n, 0.34 + n % 5 / 100) for n in range(168)), measured(168, 1.0)]}
    step: Any = SimpleNamespace(events=SimpleNamespace(publications=lambda dataset, since: held))
    now = measured(168, 1.0)
    _, result = share_results(
        VISITS, step, Commit(dataset=VISITS.dataset, version=99, entries={now.partition: now}, info={})
    )
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert result.description == "2026-01-12T00: null_share.referral is 100.0% of the rows, usual is 36.0%"


def test_each_hour_is_compared_with_those_before_it() -> None:
    later = [hour(number, 190) for number in range(168, 192)]
    result = judged(QUIET, *later[:10], hour(178, 1000), *later[11:])
    assert not result.passed
    assert result.description.startswith("2026-01-12T10: 'crawler' removed 100.0%")
    assert result.metadata["partitions"].value == 1
    assert judged(QUIET, hour(168, 200)).passed
    # A backfilled hour is compared with the hours before it, when twice as much was removed.
    before = [hour(number, 400) for number in range(168)]
    assert judged([*before, *[hour(number, 100) for number in range(169, 240)]], hour(168, 400)).passed


def letters(number: int, dead: int, rows: int) -> Entry:
    key = f"2026-01-05T{number:02d}"
    return Entry(dataset=LETTERS.dataset, partition=key, version=number, rows_in=rows, rows_out=dead, reasons={})


def accepted(*now: Entry, lifted: tuple[str, ...] = ()) -> Any:
    held = {entry.partition: entry for entry in now}
    step = SimpleNamespace(events=SimpleNamespace(publications=lambda dataset: held), accepted=lifted)
    commit = Commit(
        dataset=LETTERS.dataset, version=99, entries={entry.partition: entry for entry in now}, info={"rows": 0}
    )
    (result,) = share_results(LETTERS, step, commit)  # type: ignore[arg-type]
    return result


def test_accepted_dead_letters_pass_and_are_described() -> None:
    result = accepted(letters(1, 190, 200), lifted=(DEAD_LETTERS,))
    assert result.passed
    assert "190 of 200 rows" in result.description
    assert "blogdata run --accept dead_letters" in result.description
