"""Changes are merged by key: rows are inserted, updated, deleted, left unchanged, or refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blogdata.errors import ConfigurationError
from blogdata.lake.commit import Account, Commit
from blogdata.lake.lake import Lake
from blogdata.orchestration.step import FullDelivery
from blogdata.patterns.idempotency.merger import DELETED, merge, with_removals
from blogdata.publish import tables
from blogdata.publish.contract import Contract
from blogdata.publish.schema import Column, RowRule
from blogdata.publish.target import Engine, Provenance
from blogdata.publish.write_faults import AmbiguousChange, AuditFailed, UnmarkedChange
from blogdata.publish.writes import Merge
from idempotency.executing import step
from toy import LETTERS, resting, target

Change = tuple[str, str | None, bool | None]
pytestmark = pytest.mark.matrix(8)
every_engine = pytest.mark.parametrize("engine", list(Engine), ids=lambda engine: engine.value)


class Letters:
    """A table into which changes are merged."""

    def __init__(self, spark: Any, root: Path, engine: Engine = Engine.TRANSACTION) -> None:
        self.spark, self.root, self.engine = spark, root, engine
        self.runs = 0

    def merge(self, *changes: Change, rows: int | None = None) -> Any:
        """Merge changes (letter, value, removed) as one run."""
        self.runs += 1
        frame = self.spark.createDataFrame(list(changes), "letter STRING, says STRING, is_deleted BOOLEAN")
        accounts = {} if rows is None else {"": Account(rows_in=rows)}
        aim = target(self.root, f"run-{self.runs}", self.engine, LETTERS)
        return merge(frame, aim, Provenance(accounts=accounts), deleted=DELETED)

    def rows(self) -> list[tuple[str, str | None]]:
        return resting(self.root, LETTERS.dataset)


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


@pytest.fixture
def letters(spark: Any, lake_root: Path) -> Letters:
    return Letters(spark, lake_root)


def new(letters: Iterable[str]) -> list[Change]:
    return [(letter, "new", False) for letter in letters]


@every_engine
def test_figure_4_4_removed_rows_are_never_inserted(spark: Any, lake_root: Path, engine: Engine) -> None:
    letters = Letters(spark, lake_root, engine)
    letters.merge(("A", "new", False), ("B", None, True))
    assert letters.rows() == [("A", "new")]


@pytest.mark.campaign
def test_figure_4_4_unconditional_inserts_keep_removed_rows(spark: Any, abc: Letters) -> None:
    spark.createDataFrame(
        [("D", None, True)], "letter STRING, says STRING, is_deleted BOOLEAN"
    ).createOrReplaceTempView("first_run")
    spark.sql(
        f"MERGE INTO delta.`{Lake(root=str(abc.root)).path(LETTERS.dataset)}` t USING first_run s "
        "ON t.letter = s.letter WHEN MATCHED AND s.is_deleted THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (letter, says) VALUES (s.letter, s.says)"
    )
    assert ("D", None) in abc.rows()


@pytest.mark.campaign
def test_table_4_2_replayed_deliveries_show_wrong_rows(letters: Letters) -> None:
    """Why a backfill needs the Stateful Merger: rows of later deliveries are present while older ones run again."""
    eight = [("A", "updated", False), *new("B")]
    nine = [("B", None, True), *new("C")]
    ten = new("MNO")
    for changes in (new("A"), eight, nine, ten):
        letters.merge(*changes)
    seen = []
    for changes in (eight, nine, ten):
        letters.merge(*changes)
        seen.append("".join(letter for letter, _ in letters.rows()))
    assert seen == ["ABCMNO", "ACMNO", "ACMNO"]


SEVERAL: dict[str, Callable[[str], list[Change]]] = {
    "a change and a removal": lambda letter: [(letter, "new", False), (letter, None, True)],
    "two changes": lambda letter: [(letter, "new", False), (letter, "other", False)],
    "the same change twice": lambda letter: [(letter, "new", False)] * 2,
    "the same removal twice": lambda letter: [(letter, None, True)] * 2,
}


@pytest.mark.campaign
@every_engine
def test_several_changes_of_one_key_are_refused(spark: Any, lake_root: Path, engine: Engine) -> None:
    letters = Letters(spark, lake_root, engine)
    for several in SEVERAL.values():
        with pytest.raises(AmbiguousChange):
            letters.merge(*new("A"), *several("B"))
    letters.merge(*new("A"), ("B", "x", False))
    # A equals one of the changes, B differs, and C is missing.
    for letter in "ABC":
        for what, several in SEVERAL.items():
            with pytest.raises(AmbiguousChange) as refused:
                letters.merge(*several(letter), ("D", "new", False))
            assert "decide" in refused.value.next_step
            assert letters.rows() == [("A", "new"), ("B", "x")], (letter, what)
    letters.merge(("A", None, True), ("B", "new", False))
    assert letters.rows() == [("B", "new")]


@every_engine
def test_a_change_without_a_mark_is_refused(spark: Any, lake_root: Path, abc: Letters, engine: Engine) -> None:
    with pytest.raises(UnmarkedChange):
        Letters(spark, lake_root, engine).merge(*new("A"), ("B", "new", None))
    letters, before = Letters(spark, abc.root, engine), abc.rows()
    letters.runs = 1
    # For A it would be an update, B stays unchanged, and D is missing.
    for change in (("A", "changed", None), ("B", "new", None), ("D", "new", None)):
        with pytest.raises(UnmarkedChange) as refused:
            letters.merge(change, ("E", "new", False))
        assert "false" in refused.value.next_step
        assert letters.rows() == before, change


@every_engine
def test_concurrent_first_full_deliveries_never_mix(
    spark: Any, lake_root: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delivered(run: str, letters: str) -> Commit:
        rows = spark.createDataFrame([(letter, run) for letter in letters], "letter STRING, says STRING")
        account = Account(rows_in=len(letters))
        merging = step(spark, lake_root, replace(LETTERS, write=Merge()), run=run, engine=engine)
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


@every_engine
def test_a_full_delivery_removes_missing_rows(spark: Any, abc: Letters, engine: Engine) -> None:
    delivered = spark.createDataFrame([("A", "new"), ("C", "changed"), ("D", "new")], "letter STRING, says STRING")
    current = Lake(root=str(abc.root)).read(spark, LETTERS.dataset)
    merge(
        with_removals(delivered, current, LETTERS),
        target(abc.root, "full", engine, LETTERS),
        Provenance(),
        deleted=DELETED,
    )
    assert abc.rows() == [("A", "new"), ("C", "changed"), ("D", "new")]


def test_a_table_without_a_key_is_refused(spark: Any, lake_root: Path) -> None:
    keyless = Contract(dataset="silver.keyless", description="No key", owner="team:tests", columns=LETTERS.columns)
    frame = spark.createDataFrame([("A", "new", False)], "letter STRING, says STRING, is_deleted BOOLEAN")
    with pytest.raises(ConfigurationError, match="key"):
        merge(frame, target(lake_root, contract=keyless), Provenance(), deleted=DELETED)


@pytest.mark.campaign
def test_merging_a_changed_row_copies_no_file(spark: Any, lake_root: Path) -> None:
    contract = replace(LETTERS, write=Merge())
    lake = Lake(root=str(lake_root))
    many: list[Change] = [(f"{number:05}", "new", False) for number in range(3000)]

    def merged(run: str, changes: list[Change], rows: int) -> Commit:
        frame = spark.createDataFrame(changes, "letter STRING, says STRING, is_deleted BOOLEAN")
        provenance = Provenance(accounts={"": Account(rows_in=rows)})
        return merge(frame, target(lake_root, run, contract=contract), provenance, deleted=DELETED)

    merged("first", many, 3000)
    for run, says in (("second", "changed"), ("third", "changed again")):
        changed: list[Change] = [(f"{number:05}", says, False) for number in range(0, 3000, 1000)]
        commit = merged(run, [*changed, ("00001", None, True)], 2999)
        assert commit.rows_out == 2999, "the audit sees rows with and without the removal mark"
    # The row that the second run removed no longer exists for the third.
    opened = lake.caught_up(contract.dataset)
    assert opened is not None
    metrics = [line["operationMetrics"] for line in opened.history() if line["operation"] == "MERGE"]
    assert [(str(one["numTargetRowsCopied"]), str(one["numTargetRowsUpdated"])) for one in metrics] == [
        ("0", "3"),
        ("0", "3"),
        ("0", "0"),
    ]
    rows = {row["letter"]: row["says"] for row in lake.read(spark, contract.dataset).collect()}
    assert len(rows) == 2999 == lake.row_counts(contract.dataset, None)[""]
    assert {letter for letter, says in rows.items() if says != "new"} == {"00000", "01000", "02000"}
    assert set(rows.values()) == {"new", "changed again"}
    with pytest.raises(AuditFailed, match="account"):
        merged("wrong", [("00002", None, True)], 2999)
    assert len(resting(lake_root, contract.dataset)) == 2999


@pytest.mark.campaign
@every_engine
def test_tables_lacking_a_key_column_are_replaced_once(spark: Any, lake_root: Path, engine: Engine) -> None:
    older = replace(LETTERS, write=Merge())
    since = Column(name="since", type="STRING", nullable=False, description="The day")
    rule = RowRule(
        name="told", expression="since IS NULL OR (length(says) > 0) = true", description="It says something"
    )
    newer = replace(older, columns=(*LETTERS.columns, since), key=("letter", "since"), rules=(rule,))
    lake, seen = Lake(root=str(lake_root)), []

    def delivered(contract: Contract, run: str, *rows: tuple[str, ...]) -> Commit:
        def all_rows(before: Any) -> Any:
            seen.append(sorted(tuple(row) for row in before.collect()))
            return spark.createDataFrame(list(rows), contract.ddl)

        delivery = FullDelivery(rows=all_rows, account=Account(rows_in=len(rows)))
        return step(spark, lake_root, contract, run=run, engine=engine).publish(delivery)[LETTERS.dataset]

    delivered(older, "first", ("A", "a"), ("B", "b"))
    delivered(newer, "second", ("A", "a", "mon"), ("A", "b", "tue"))
    # Now it is merged like any other: unchanged rows are not written.
    assert delivered(newer, "third", ("A", "a", "mon"), ("C", "c", "wed")).rows_out == 2
    assert seen == [[], [("A", "a", None), ("B", "b", None)], [("A", "a", "mon"), ("A", "b", "tue")]]
    assert sorted(tuple(row) for row in lake.read(spark, LETTERS.dataset).collect()) == [
        ("A", "a", "mon"),
        ("C", "c", "wed"),
    ]
