from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from blogdata.contract.publication import Account, Commit
from blogdata.contract.writes import Merge
from blogdata.patterns.idempotency import merger
from blogdata.patterns.idempotency.merger import differences
from blogdata.runs.step import FullDelivery
from blogdata.table import tables
from blogdata.table.faults import AuditFailed, WriteRefused
from blogdata.table.lake import Lake
from blogdata.table.publish import publish
from blogdata.table.target import AppendBatch, Provenance
from toy import LETTERS, copies_of, merged, resting, step, target

Change = tuple[str, str | None, bool | None]
pytestmark = pytest.mark.matrix(8)


class Letters:
    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.root = spark, root

    def merge(self, *changes: Change, rows: int | None = None) -> Any:
        frame = self.spark.createDataFrame(list(changes), "letter STRING, says STRING, is_deleted BOOLEAN")
        accounts = {} if rows is None else {"": Account(rows_in=rows)}
        return merged(frame, target(self.root, uuid4().hex, LETTERS), Provenance(accounts=accounts))

    def rows(self) -> list[tuple[str, str | None]]:
        return resting(self.root, LETTERS.dataset)

    def files(self) -> set[str]:
        table = Lake(root=str(self.root)).table(LETTERS.dataset)
        return set(table.file_uris()) if table else set()


def first_delivery(spark: Any, root: Path) -> None:
    """Figure 4-4: a row that is removed in the first delivery is never inserted."""
    first = Letters(spark, root)
    first.merge(*((letter, "new", False) for letter in "ABC"), ("D", None, True))
    assert first.rows() == [("A", "new"), ("B", "new"), ("C", "new")]


abc = copies_of(first_delivery, Letters)


@pytest.mark.parametrize(
    "several",
    [
        [("B", "x", False), ("B", None, True)],
        [("B", "new", False), ("B", "new", False)],
        [("D", None, True), ("D", None, True)],
        [("B", "new", None)],
        [("D", "new", None)],
    ],
)
def test_several_changes_of_one_key_and_unmarked_ones_are_refused(abc: Letters, several: list[Change]) -> None:
    """Also if they change nothing: B is as it was, and D is missing."""
    before = abc.rows()
    with pytest.raises(WriteRefused, match="key of one row" if several[1:] else "marked as removed or not"):
        abc.merge(*several, ("E", "new", False))
    assert abc.rows() == before


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
    merged(differences(delivered, current, LETTERS), target(abc.root, "full", LETTERS), Provenance())
    assert abc.rows() == [("A", "new"), ("C", "changed"), ("D", "new")]
