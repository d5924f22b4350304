"""Changes are merged by key: rows are inserted, updated, deleted, left unchanged, or refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blogdata.contract.publication import Account, Commit
from blogdata.contract.writes import Merge
from blogdata.patterns.idempotency import merger
from blogdata.patterns.idempotency.merger import differences, merge
from blogdata.runs.step import FullDelivery
from blogdata.table import tables
from blogdata.table.lake import Lake
from blogdata.table.publish import publish
from blogdata.table.target import AppendBatch, Provenance
from blogdata.table.write_faults import AuditFailed, WriteRefused
from patterns.executing import step
from toy import LETTERS, resting, target

Change = tuple[str, str | None, bool | None]
pytestmark = pytest.mark.matrix(8)


class Letters:
    """A table into which changes are merged."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.root = spark, root
        self.runs = 0

    def merge(self, *changes: Change, rows: int | None = None) -> Any:
        """Merge changes (letter, value, removed) as one run."""
        self.runs += 1
        frame = self.spark.createDataFrame(list(changes), "letter STRING, says STRING, is_deleted BOOLEAN")
        accounts = {} if rows is None else {"": Account(rows_in=rows)}
        aim = target(self.root, f"run-{self.runs}", LETTERS)
        return merge(frame, aim, Provenance(accounts=accounts))

    def rows(self) -> list[tuple[str, str | None]]:
        return resting(self.root, LETTERS.dataset)

    def files(self) -> set[str]:
        table = Lake(root=str(self.root)).table(LETTERS.dataset)
        return set() if table is None else set(table.file_uris())


@pytest.fixture(scope="module")
def three_letters(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with three new letters."""
    root = tmp_path_factory.mktemp("abc") / "lake"
    root.mkdir()
    Letters(spark, root).merge(*new("ABC"))
    return root


@pytest.fixture
def abc(spark: Any, three_letters: Path, tmp_path: Path) -> Letters:
    found = Letters(spark, shutil.copytree(three_letters, tmp_path / "abc"))
    found.runs = 1
    return found


def new(letters: Iterable[str]) -> list[Change]:
    return [(letter, "new", False) for letter in letters]


def test_figure_4_4_removed_rows_are_never_inserted(spark: Any, lake_root: Path) -> None:
    letters = Letters(spark, lake_root)
    letters.merge(("A", "new", False), ("B", None, True))
    assert letters.rows() == [("A", "new")]


SEVERAL: dict[str, Callable[[str], list[Change]]] = {
    "a change and a removal": lambda letter: [(letter, "new", False), (letter, None, True)],
    "two changes": lambda letter: [(letter, "new", False), (letter, "other", False)],
    "the same change twice": lambda letter: [(letter, "new", False)] * 2,
    "the same removal twice": lambda letter: [(letter, None, True)] * 2,
}


@pytest.mark.campaign
def test_several_changes_of_one_key_are_refused(spark: Any, lake_root: Path) -> None:
    letters = Letters(spark, lake_root)
    for several in SEVERAL.values():
        with pytest.raises(WriteRefused, match="key of one row"):
            letters.merge(*new("A"), *several("B"))
    letters.merge(*new("A"), ("B", "x", False))
    # A equals one of the changes, B differs, and C is missing.
    for letter in "ABC":
        for what, several in SEVERAL.items():
            with pytest.raises(WriteRefused, match="key of one row") as refused:
                letters.merge(*several(letter), ("D", "new", False))
            assert "decide" in refused.value.next_step
            assert letters.rows() == [("A", "new"), ("B", "x")], (letter, what)
    letters.merge(("A", None, True), ("B", "new", False))
    assert letters.rows() == [("B", "new")]


def test_a_change_without_a_mark_is_refused(spark: Any, lake_root: Path, abc: Letters) -> None:
    with pytest.raises(WriteRefused, match="marked as removed or not"):
        Letters(spark, lake_root).merge(*new("A"), ("B", "new", None))
    letters, before = Letters(spark, abc.root), abc.rows()
    letters.runs = 1
    # For A it would be an update, B stays unchanged, and D is missing.
    for change in (("A", "changed", None), ("B", "new", None), ("D", "new", None)):
        with pytest.raises(WriteRefused, match="marked as removed or not") as refused:
            letters.merge(change, ("E", "new", False))
        assert "false" in refused.value.next_step
        assert letters.rows() == before, change


def test_concurrent_first_full_deliveries_never_mix(
    spark: Any, lake_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delivered(run: str, letters: str) -> Commit:
        rows = spark.createDataFrame([(letter, run) for letter in letters], "letter STRING, says STRING")
        account = Account(rows_in=len(letters))
        merging = step(spark, lake_root, replace(LETTERS, write=Merge()), run=run)
        return merging.publish(FullDelivery(rows=lambda _: rows, account=account))[LETTERS.dataset]

    enforce, first = tables.enforce, list[Commit]()

    def overtaken(*arguments: Any, **more: Any) -> None:
        monkeypatch.undo()
        first.append(delivered("fast", "BC"))
        enforce(*arguments, **more)

    # After the check that found no table, and before the transaction begins.
    monkeypatch.setattr(tables, "enforce", overtaken)
    assert delivered("slow", "A").version == first[0].version + 1
    assert Letters(spark, lake_root).rows() == [("A", "slow")]


def test_of_a_large_table_only_files_with_changed_keys_are_written_again(
    spark: Any, abc: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merger, "SMALL", 0)
    more = spark.createDataFrame([("D", "new"), ("E", "new")], "letter STRING, says STRING").coalesce(1)
    added = AppendBatch(stream="more", batch=0)
    old = abc.files()
    publish(more, target(abc.root, "more", LETTERS), change=added, partitions=(), provenance=Provenance())
    (unchanged,) = abc.files() - old
    abc.merge(("A", "changed", False), ("B", None, True), ("C", "new", False), ("E", "new", False), ("F", "new", False))
    assert abc.rows() == [("A", "changed"), ("C", "new"), ("D", "new"), ("E", "new"), ("F", "new")]
    assert abc.files() & (old | {unchanged}) == {unchanged}
    with pytest.raises(AuditFailed) as refused:
        abc.merge(("D", "changed", False), rows=4)
    assert [(item.rule, item.found) for item in refused.value.violations] == [("account.accounted", 5)]


def test_a_full_delivery_removes_missing_rows(spark: Any, abc: Letters) -> None:
    delivered = spark.createDataFrame([("A", "new"), ("C", "changed"), ("D", "new")], "letter STRING, says STRING")
    current = Lake(root=str(abc.root)).read(spark, LETTERS.dataset)
    merge(differences(delivered, current, LETTERS), target(abc.root, "full", LETTERS), Provenance())
    assert abc.rows() == [("A", "new"), ("C", "changed"), ("D", "new")]
