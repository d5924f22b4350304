"""Filter Interceptor: a filter that removes a far larger share than before gives a warning and stops nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from blogdata.lake.commit import Commit, Entry
from blogdata.orchestration.shares import share_results
from blogdata.planning.staleness import DEAD_LETTERS
from quality.contracts import CONTRACTS

KEY = dg.AssetKey(["silver", "visits"])
VISITS = CONTRACTS["silver.visits"]
LETTERS = CONTRACTS["bronze.dead_letters"]


def hour(number: int, crawlers: int, rows: int = 1000) -> Entry:
    return Entry(
        dataset="silver.visits",
        partition=f"2026-01-{5 + number // 24:02d}T{number % 24:02d}",
        version=number,
        rows_in=rows,
        rows_out=rows - crawlers,
        # As in a commit: a filter that removed nothing is not among the reasons.
        reasons={**({"filtered.crawler": crawlers} if crawlers else {}), "duplicates": 0},
    )


def judged(past: list[Entry], *now: Entry) -> Any:
    held = {entry.partition: entry for entry in (*past, *now)}
    step = SimpleNamespace(events=SimpleNamespace(publications=lambda dataset, since: held))
    commit = Commit(dataset="silver.visits", version=99, entries={entry.partition: entry for entry in now}, info={})
    (result,) = share_results(KEY, VISITS, step, commit)  # type: ignore[arg-type]
    return result


QUIET = [hour(number, 180 + number % 40) for number in range(168)]


def test_a_filters_usual_share_gives_no_warning() -> None:
    assert judged(QUIET, hour(168, 200)).passed


@pytest.mark.parametrize("crawlers", [0, 700])
def test_a_jumping_filter_warns_with_both_shares(crawlers: int) -> None:
    result = judged(QUIET, hour(168, crawlers))
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    told = f"2026-01-12T00: 'crawler' removed {crawlers / 1000:.1%} of the rows, usual are 19.9%"
    assert result.description == told


def test_each_hour_is_compared_with_those_before_it() -> None:
    later = [hour(number, 190) for number in range(168, 192)]
    result = judged(QUIET, *later[:10], hour(178, 1000), *later[11:])
    assert not result.passed
    assert result.description.startswith("2026-01-12T10: 'crawler' removed 100.0%")
    assert result.metadata["partitions"].value == 1
    # A backfilled hour is compared with the hours before it, when twice as much was removed.
    before = [hour(number, 400) for number in range(168)]
    assert judged([*before, *[hour(number, 100) for number in range(169, 240)]], hour(168, 400)).passed


def letters(number: int, dead: int, rows: int) -> Entry:
    key = f"2026-01-05T{number:02d}"
    return Entry(dataset=LETTERS.dataset, partition=key, version=number, rows_in=rows, rows_out=dead, reasons={})


def accepted(past: list[Entry], *now: Entry, lifted: tuple[str, ...] = ()) -> Any:
    held = {entry.partition: entry for entry in (*past, *now)}
    step = SimpleNamespace(events=SimpleNamespace(publications=lambda dataset: held), accepted=lifted)
    commit = Commit(
        dataset=LETTERS.dataset, version=99, entries={entry.partition: entry for entry in now}, info={"rows": 0}
    )
    (result,) = share_results(KEY, LETTERS, step, commit)  # type: ignore[arg-type]
    return result


def test_quiet_hours_are_judged_with_quiet_predecessors() -> None:
    broken = [letters(number, 40, 40) for number in range(3)]
    assert accepted([], broken[0]).passed
    result = accepted(broken[:2], broken[2])
    assert not result.passed
    assert "bronze.dead_letters 2026-01-05T00..2026-01-05T02: 120 of 120 rows" in result.description
    # Later hours and busy hours are not among them.
    assert accepted([letters(4, 0, 90), letters(1, 0, 90), letters(0, 300, 300)], letters(2, 90, 90)).passed
    assert not accepted([], *broken).passed
    # A delivery whose own lines are usable is not blamed for earlier ones.
    assert accepted(broken, letters(3, 5, 10)).passed


def test_accepted_dead_letters_pass_and_are_described() -> None:
    result = accepted([], letters(1, 190, 200), lifted=(DEAD_LETTERS,))
    assert result.passed
    assert "190 of 200 rows" in result.description
    assert "blogdata run --accept dead_letters" in result.description
