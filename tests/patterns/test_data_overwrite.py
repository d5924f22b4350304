from pathlib import Path
from typing import Any

import pytest

from blogdata.contract.publication import Account, Added, Commit
from blogdata.ledger.events import EventLog
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.table import arrow
from blogdata.table.faults import AuditFailed, ConcurrentWrite
from blogdata.table.lake import Lake
from blogdata.table.target import Additions, Provenance
from toy import CONTRACT, HOURS, accounts, clicks, copies_of, problems, resting, target


class Slice:
    """Rows 100 to 109 of both hours: those of the first hour are added, those of the second replace what it has."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.root, self.lake = spark, root, Lake(root=str(root))
        at = self.lake.version(CONTRACT.dataset)
        assert at is not None
        self.at = at

    def add(self, run: str, *, rows: Any = None, more: int = 0, **how: Any) -> Commit:
        """Publish the rows, with an account that says so, or that says `more` of the first hour."""
        replaced = sum(1 + row % 3 for row in range(101, 110, 2))
        added = Added(after=self.at, rows_before=50, slices=("late",), times=1)
        provenance = Provenance(
            accounts={
                HOURS[0]: Account(rows_in=accounts(110)[HOURS[0]].rows_in + more),
                HOURS[1]: Account(rows_in=replaced),
            },
            additions=Additions(at=self.at, of={HOURS[0]: added}),
        )
        frame = clicks(self.spark, 10, first=100) if rows is None else rows
        return overwrite_partitions(frame, target(self.root, run, **how), HOURS, provenance)

    def files(self) -> dict[str, set[str]]:
        (part,) = self.lake.parts(CONTRACT.dataset)
        files = arrow.rows_of(part.table.get_add_actions(flatten=True), ["path", "partition.hour"])
        return {hour: {file["path"] for file in files if file["partition.hour"] == hour} for hour in HOURS}


made = copies_of(
    lambda spark, root: overwrite_partitions(
        clicks(spark), target(root, "one"), HOURS, Provenance(accounts=accounts())
    ),
    Slice,
)


def test_rows_are_added_to_one_partition_while_another_is_replaced(made: Slice) -> None:
    before = made.files()
    commit = made.add("two")
    after = made.files()
    assert before[HOURS[0]] < after[HOURS[0]]
    assert before[HOURS[1]].isdisjoint(after[HOURS[1]])
    expected = {(HOURS[0], click) for click in (*range(0, 100, 2), *range(100, 110, 2))}
    assert {row[:2] for row in resting(made.root)} == expected | {(HOURS[1], click) for click in range(101, 110, 2)}
    entry = commit.entries[HOURS[0]]
    assert (entry.rows_out, entry.rows_written, entry.rows_in) == (55, 5, accounts(110)[HOURS[0]].rows_in)
    assert entry.measures == {"pages": 5}, "the figures are of the whole partition"
    assert sum(entry.breakdowns["pages"].values()) == 55
    assert commit.entries[HOURS[1]].added is None
    assert EventLog(made.lake).publications(CONTRACT.dataset)[HOURS[0]].added == entry.added
    assert problems(made.lake, CONTRACT) == []
    assert made.add("two").repeated


def test_added_rows_are_audited_with_those_that_are_there(made: Slice) -> None:
    before = resting(made.root)
    again = clicks(made.spark, 2).where("click = 0").unionByName(clicks(made.spark, 10, first=100))
    with pytest.raises(AuditFailed) as doubled:
        made.add("two", rows=again, more=1)
    assert {(item.rule, item.partition) for item in doubled.value.violations} == {("unique.click", HOURS[0])}
    with pytest.raises(AuditFailed) as lost:
        made.add("three", more=1)
    assert {item.rule for item in lost.value.violations} == {"account.accounted"}
    assert resting(made.root) == before


def test_rows_are_not_added_to_a_table_that_has_changed(made: Slice) -> None:
    meanwhile = overwrite_partitions(clicks(made.spark), target(made.root, "meanwhile"), HOURS, Provenance())
    before = resting(made.root)
    with pytest.raises(ConcurrentWrite):
        made.add("two")
    assert resting(made.root) == before
    made.at = meanwhile.version
    made.add("three")
    assert len(resting(made.root)) == 60
