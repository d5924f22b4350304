"""A table's content, derived from its executions alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogdata.contract.partitions import Grain
from blogdata.contract.publication import Entry
from blogdata.contract.writes import InOrder
from blogdata.ledger.executions import ReplayTooLong, applied, base_of, due, state
from toy import LETTERS, entry


def mark(period: str, version: int, restored: int | None = None) -> Entry:
    return entry("a.b", period, version, restored=restored)


@given(steps=st.lists(st.one_of(st.just("compact"), st.integers(0, 9)), max_size=25))
def test_the_derived_state_equals_the_tables_versions(steps: list[str | int]) -> None:
    versions: list[tuple[str, ...]] = [()]
    marks: list[Entry] = []
    for step in steps:
        content, version = versions[-1], len(versions)
        if step != "compact":
            contained, period = applied(marks), f"{step:03d}"
            kept = tuple(key for key in content if key < period)
            base = None if kept == content else base_of(contained[len(kept)])
            assert versions[version - 1 if base is None else base] == kept
            marks.append(mark(period, version, restored=base))
            content = (*kept, period)
        versions.append(content)
    assert tuple(line.partition for line in applied(marks)) == versions[-1]
    newest = {line.partition: line.version for line in marks}
    contained_at = {line.partition: line.version for line in applied(marks)}
    now = {execution for execution, _, is_applied in state(marks) if is_applied}
    assert now == {key for key, version in newest.items() if contained_at.get(key) == version}


def test_too_many_executions_are_replayed_only_when_named() -> None:
    contract = replace(LETTERS, write=InOrder(period=Grain.DAY, replay_limit=2))
    days = [f"2024-10-0{day}" for day in range(5, 9)]
    marks = [mark(day, version) for version, day in enumerate(days, 1)]
    assert due(contract, marks, [days[1]]) == days[1:]
    with pytest.raises(ReplayTooLong, match="3 later executions") as refused:
        due(contract, marks, [days[0]])
    assert f"{days[0]}..{days[3]}" in refused.value.next_step
    assert due(contract, marks, days) == days
