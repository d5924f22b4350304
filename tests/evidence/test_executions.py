"""A table's content, derived from its executions and restorations alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blogdata.evidence.executions import EMPTY, applied, state
from blogdata.lake.commit import Entry


def mark(period: str, version: int, restored: int | None = None) -> Entry:
    return Entry(dataset="a.b", partition=period, version=version, rows_in=0, rows_out=0, reasons={}, restored=restored)


def test_a_restoration_marks_later_executions_not_applied() -> None:
    marks = [mark("05", 1), mark("06", 2), mark("07", 3), mark("06", 4, restored=1), mark("06", 5)]
    assert [entry.version for entry in applied(marks)] == [1, 5]
    assert {key: (line.version, line.applied) for key, line in state(marks).items()} == {
        "05": (1, True),
        "06": (5, True),
        "07": (3, False),
    }


def test_a_restoration_to_nothing_leaves_nothing() -> None:
    assert applied([mark("05", 1), mark("05", 2, restored=EMPTY)]) == ()


def test_restoring_a_compaction_keeps_the_executions_before_it() -> None:
    """Versions 2 and 4 are compactions: figure 4-7."""
    marks = [mark("05", 1), mark("06", 3), mark("07", 5), mark("07", 6, restored=4)]
    assert [entry.partition for entry in applied(marks)] == ["05", "06"]


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
    found = {key for key, line in state(marks).items() if line.applied}
    assert found == {key for key, version in newest.items() if contained.get(key) == version}
