"""Lines that an hour lost between its published and its current files; what comes of its rows: `test_deliveries`."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogdata.landing import vanished_lines
from blogdata.landing.vanished_lines import Line, Loss

HOUR = "2026-01-05T10"
Files = Mapping[str, list[str]]


def write(folder: Path, files: Files) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        content = "".join(f"{line}\n" for line in lines).encode()
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


def lost(tmp_path: Path, before: Files, after: Files) -> Loss | None:
    """Compute which lines an hour lost between its published files and its current files, read from disk."""
    folder = tmp_path / "visits" / "date=2026-01-05" / "hour=10"
    inside = str(folder.relative_to(tmp_path))
    write(folder, after)
    lines = [
        Line(f"{inside}/{name}", 100 * at, line.encode())
        for name, found in before.items()
        for at, line in enumerate(found)
    ]
    return vanished_lines.loss(
        HOUR,
        {f"{inside}/{name}": len(found) for name, found in before.items()},
        {f"{inside}/{name}": len(found) for name, found in after.items()},
        published_lines=lambda: lines,
        landed_lines=lambda: vanished_lines.landed_lines([folder / name for name in after], tmp_path),
    )


A, B = ["1", "2", "3"], ["4", "5"]
BEFORE = {"a.json": A, "b.json": B}
FIRST, SECOND, OTHER = (f"replay-{stem * 16}-{payload * 16}.json" for stem, payload in ("ab", "ac", "db"))
CHANGES: dict[str, tuple[Files, Files, int]] = {
    "the hour is emptied": (BEFORE, {}, 5),
    "a file is removed": (BEFORE, {"a.json": A}, 2),
    "a file is cut off": (BEFORE, {**BEFORE, "a.json": ["1"]}, 2),
    "delivered anew with fewer lines": (BEFORE, {"c.json": ["1", "2", "3", "4"]}, 1),
    "a copy of a line is one": ({"a.json": ["1", "1"], "b.json": ["1"]}, {"a.json": ["1", "1"]}, 1),
    "a correction is removed": ({**BEFORE, FIRST: ["6"]}, {**BEFORE, OTHER: ["7"]}, 1),
    "the lines of a file are in another one": ({"a.json": ["1"], "b.json": ["2"]}, {"a.json": ["2"]}, 0),
    "a correction is corrected": ({**BEFORE, FIRST: ["6"]}, {**BEFORE, SECOND: ["7"]}, 0),
    "a late file comes": (BEFORE, {**BEFORE, "c.json": ["6"]}, 0),
    "a file is corrected in place": (BEFORE, {**BEFORE, "a.json": ["1", "two", "3"]}, 0),
    "a file grows": (BEFORE, {**BEFORE, "a.json": ["0", *A]}, 0),
    "a file is renamed": (BEFORE, {"z.json": A, "b.json": B}, 0),
    "a file is compressed": (BEFORE, {"a.json.gz": A, "b.json": B}, 0),
    "the files are joined": (BEFORE, {"all.json": ["5", "4", "3", "2", "1"]}, 0),
    "a file is split": (BEFORE, {**BEFORE, "a.json": ["1"], "c.json": ["3", "2"]}, 0),
    "delivered anew, whole, under new names": (BEFORE, {"x.json": ["a", "b", "c", "d", "e"]}, 0),
}


@pytest.mark.parametrize(("before", "after", "lines"), CHANGES.values(), ids=CHANGES)
def test_lines_that_vanish_are_counted_and_explained_changes_are_no_loss(
    tmp_path: Path, before: Files, after: Files, lines: int
) -> None:
    loss = lost(tmp_path, before, after)
    assert (loss.lines if loss is not None else 0) == lines
    assert loss is None or lines


LINES = st.lists(st.sampled_from("abc"), max_size=4)
HOURS_OF_FILES = st.dictionaries(st.sampled_from(["1.json", "2.json", "3.json"]), LINES)


@given(HOURS_OF_FILES, HOURS_OF_FILES)
def test_no_line_of_a_lacking_file_vanishes_unseen(before: Files, after: Files) -> None:
    """Counted independently: each line of a file with missing lines is in the hour as often as before, or reported
    missing.
    """
    there, now = (
        [Line(name, at, line.encode()) for name, found in files.items() for at, line in enumerate(found)]
        for files in (before, after)
    )
    sizes = [{name: len(found) for name, found in files.items()} for files in (before, after)]
    found = vanished_lines.loss(HOUR, *sizes, published_lines=lambda: there, landed_lines=lambda: now)
    if not before.keys() & after.keys() and len(now) >= len(there):
        assert found is None, "delivered anew"
        return
    lacking = [line for name, lines in before.items() if len(after.get(name, [])) < len(lines) for line in lines]
    missed = sum((Counter(lacking) - Counter(line for lines in after.values() for line in lines)).values())
    assert (found.lines if found is not None else 0) >= missed
    assert (found is None) or found.lines <= len(lacking)
