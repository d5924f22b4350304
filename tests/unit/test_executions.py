"""A table's content, derived from its executions and restorations alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blogdata.contract.publication import Entry
from blogdata.ledger.executions import applied, state


def mark(period: str, version: int, restored: int | None = None) -> Entry:
    return Entry(dataset="a.b", partition=period, version=version, rows_in=0, rows_out=0, reasons={}, restored=restored)


steps = st.lists(st.one_of(st.just("merge"), st.just("compact"), st.integers(0, 99)), max_size=25)


@given(steps=steps)
def test_the_derived_state_equals_the_tables_versions(steps: list[str | int]) -> None:
    versions: list[tuple[str, ...]] = [()]
    marks: list[Entry] = []
    for step in steps:
        held, version = versions[-1], len(versions)
        if step == "compact":
            versions.append(held)
        elif step == "merge":
            period = f"{int(held[-1]) + 1 if held else 0:03d}"
            versions.append((*held, period))
            marks.append(mark(period, version))
        else:
            back = int(step) % version
            versions.append(versions[back])
            marks.append(mark("x", version, restored=back))
    assert tuple(entry.partition for entry in applied(marks)) == versions[-1]
    newest = {entry.partition: entry.version for entry in marks if entry.restored is None}
    contained = {entry.partition: entry.version for entry in applied(marks)}
    now = {execution for execution, _, is_applied in state(marks) if is_applied}
    assert now == {key for key, version in newest.items() if contained.get(key) == version}
