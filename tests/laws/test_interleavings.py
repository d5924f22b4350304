"""Any two of the things that change a table, one of them in the middle of the other: one after the other, or refused.

The first is held when its files are written and audited; the second runs to its end; then the first goes on. What is in
the table afterwards is what one of the two orders leaves, or what the second leaves alone when the first is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from core.toy import WHOLE, table, target
from laws.stepping import Held, Probe
from laws.writers import Batch, State
from patterns.core.lake import Lake
from patterns.idempotency.data_overwrite import overwrite_table
from patterns.idempotency.merger import merge
from patterns.quality.audit_write_audit_publish import Provenance, Target, restate
from patterns.quality.write_faults import ConcurrentWrite

pytestmark = pytest.mark.matrix(5)
CONTRACT = replace(WHOLE, dataset="silver.stepped", reasons={}, breakdowns={})
BEFORE = Batch(first=0, rows=60)
OVERWRITTEN = Batch(first=200, rows=20)
MERGED = Batch(first=50, rows=30)
ERASED = "click % 10 = 3"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """Something that changes a table.

    Args:
        run: Does it.
        model: What it makes of a table, in plain Python.
        steps: Whether it can be held in its middle.
    """

    run: Callable[[Any, Target], object]
    model: Callable[[State], State]
    steps: bool = True


def _vacuum(spark: Any, aim: Target) -> object:
    return spark.sql(f"VACUUM delta.`{aim.lake.path(CONTRACT.dataset)}`").collect()


def _append(first: int) -> Operation:
    """Append rows that nobody else appends: two appends of the same rows double them, which no writer here does."""
    batch = Batch(first=first, rows=10)

    def run(spark: Any, aim: Target) -> object:
        batch.frame(spark).createOrReplaceTempView(f"appended_{first}")
        return restate(spark, aim, f"INSERT INTO {{table}} SELECT * FROM appended_{first}", Provenance())

    return Operation(run=run, model=lambda rows: rows | batch.model())


OPERATIONS = {
    "append": _append(1000),
    "overwrite": Operation(
        run=lambda spark, aim: overwrite_table(OVERWRITTEN.frame(spark), aim, Provenance()),
        model=lambda rows: OVERWRITTEN.model(),
    ),
    "merge": Operation(
        run=lambda spark, aim: merge(MERGED.frame(spark), aim, Provenance(), deleted=None),
        model=lambda rows: rows | MERGED.model(),
    ),
    "compact": Operation(
        run=lambda spark, aim: restate(spark, aim, "OPTIMIZE {table}", Provenance()), model=lambda rows: rows
    ),
    "erase": Operation(
        run=lambda spark, aim: restate(spark, aim, f"DELETE FROM {{table}} WHERE {ERASED}", Provenance()),
        model=lambda rows: frozenset(row for row in rows if row[1] % 10 != 3),
    ),
    "vacuum": Operation(run=_vacuum, model=lambda rows: rows, steps=False),
}
PAIRS = [(first, second) for first in OPERATIONS if OPERATIONS[first].steps for second in OPERATIONS]
REFUSED = {
    ("overwrite", "append"),
    ("overwrite", "overwrite"),
    ("overwrite", "merge"),
    ("overwrite", "compact"),
    ("overwrite", "erase"),
    ("merge", "append"),
    ("merge", "overwrite"),
    ("merge", "merge"),
    ("merge", "compact"),
    ("merge", "erase"),
    ("compact", "overwrite"),
    ("compact", "compact"),
    ("compact", "erase"),
    ("erase", "append"),
    ("erase", "overwrite"),
    ("erase", "merge"),
    ("erase", "compact"),
    ("erase", "erase"),
}
"""The first one is refused when the second came in between: a transient error, and the next attempt sees its rows."""


class Stepped:
    """One table that two operations meet in, made anew for each pair."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.root = spark, root
        # Two commits, so that there is something to compact.
        half = Batch(first=0, rows=30)
        overwrite_table(half.frame(spark), self.target("first half"), Provenance())
        rest = Batch(first=30, rows=30)
        merge(rest.frame(spark), self.target("second half"), Provenance(), deleted=None)

    def target(self, run: str, probe: Probe | None = None) -> Target:
        more = {} if probe is None else {"probe": str(probe.folder)}
        return target(self.root, run, contract=CONTRACT, **more)

    def rows(self) -> State:
        found = table(self.spark, self.root, CONTRACT.dataset)
        assert len(found) == len(set(found)), "no row is doubled"
        return frozenset(found)


@pytest.fixture
def stepped(spark: Any, lake_root: Path) -> Stepped:
    return Stepped(spark, lake_root)


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda name: name)
def test_two_operations_end_as_if_one_had_followed_the_other_or_one_is_refused(
    stepped: Stepped, spark: Any, probe: Probe, first: str, second: str
) -> None:
    one, other = OPERATIONS[first], _append(2000) if second == "append" else OPERATIONS[second]
    before = BEFORE.model()
    assert stepped.rows() == before
    with Held(lambda: one.run(spark, stepped.target("first", probe)), probe, "audited") as held:
        other.run(spark, stepped.target("second"))
        assert stepped.rows() == other.model(before), "nobody sees anything of what is held"
    if (first, second) in REFUSED:
        assert isinstance(held.error, ConcurrentWrite), held.error
        assert held.error.transient
        assert stepped.rows() == other.model(before), "never a mixture"
        one.run(spark, stepped.target("first"))
        assert stepped.rows() == one.model(other.model(before))
    else:
        assert held.error is None, held.error
        assert stepped.rows() in (one.model(other.model(before)), other.model(one.model(before)))


@pytest.mark.parametrize("first", [name for name, one in OPERATIONS.items() if one.steps])
def test_a_vacuum_after_a_crash_takes_nothing_that_readers_or_a_restore_need(
    stepped: Stepped, spark: Any, probe: Probe, first: str
) -> None:
    probe.end("audited")
    with pytest.raises(Exception, match="the write was ended at audited"):
        OPERATIONS[first].run(spark, stepped.target("first", probe))
    _vacuum(spark, stepped.target("vacuum"))
    assert stepped.rows() == BEFORE.model()
    lake = Lake(root=str(stepped.root))
    assert lake.read(spark, CONTRACT.dataset, 1).count() == 30, "an older version can still be restored"
    OPERATIONS[first].run(spark, stepped.target("first"))
    assert stepped.rows() == OPERATIONS[first].model(BEFORE.model())


def test_the_docs_have_the_outcomes_as_they_are() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "guarantees.md").read_text(encoding="utf-8")
    lines = [[cell.strip(" `*") for cell in line.strip("|").split("|")] for line in page.splitlines() if "|" in line]
    (header,) = [line for line in lines if line[0] == "held, then goes on"]
    rows = {line[0]: dict(zip(header[1:], line[1:], strict=True)) for line in lines if line[0] in OPERATIONS}
    told = {(first, second) for first, cells in rows.items() for second, cell in cells.items() if cell == "refused"}
    assert {(first, second) for first in rows for second in rows[first]} == set(PAIRS)
    assert told == REFUSED
