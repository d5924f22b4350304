"""Any two table operations, one in the middle of the other: the result is serial, or one of them is refused.

The first is held at a phase; the second runs to its end; then the first continues. Afterwards the table has the content
of one of the two orders, or of the second operation alone if the first is refused.

All files that exist before are past the vacuum's retention: only files that are still needed are kept.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from blogdata.patterns.idempotency.data_overwrite import overwrite_table
from blogdata.table.compactor import compact
from blogdata.table.faults import ConcurrentWrite
from blogdata.table.lake import Lake
from blogdata.table.publish import publish
from blogdata.table.target import AppendBatch, Provenance, Rewrite, Target
from laws.stepping import Held, Probe
from laws.writers import Batch, State
from toy import WHOLE, merged, resting, target

CONTRACT = replace(WHOLE, dataset="silver.stepped", reasons={}, breakdowns={})
PHASES = ("opened", "written", "audited")
LISTING = "listing"
REPLACED, BEFORE = Batch(first=500, rows=5), Batch(first=0, rows=60)
OVERWRITTEN, MERGED = Batch(first=200, rows=20), Batch(first=50, rows=30)
ERASED = "click % 10 = 3"
LONG_AGO = 8 * 24 * 3600
"""Seconds; whatever nobody needs is kept by a vacuum for a week."""


@dataclass(frozen=True)
class Operation:
    """An operation that changes a table; `model` computes the rows afterwards in plain Python."""

    run: Callable[[Any, Target], object]
    model: Callable[[State], State]
    phases: tuple[str, ...] = PHASES
    """Phases at which it can be held."""


def _vacuum(spark: Any, aim: Target) -> object:
    """Run VACUUM; with a probe, it is held after computing the needed files, before it lists the existing ones."""
    folder, probe = aim.lake.path(CONTRACT.dataset), aim.probe
    if probe is None:
        return spark.sql(f"VACUUM delta.`{folder}`").collect()

    def files() -> list[tuple[str, int, bool, int]]:
        # Runs in the server, which cannot import this module.
        Path(probe, f"{LISTING}.reached").touch()
        while Path(probe, f"{LISTING}.hold").exists():
            time.sleep(0.02)
        listed = [(file, file.stat()) for file in Path(folder).rglob("[!_.]*.parquet")]
        return [(f"file:{file}", stat.st_size, False, int(stat.st_mtime * 1000)) for file, stat in listed]

    spark.udf.register(
        "files", files, "array<struct<path: string, length: long, isDir: boolean, modificationTime: long>>"
    )
    return spark.sql(f"VACUUM delta.`{folder}` USING INVENTORY (SELECT inline(files()))").collect()


def _append(first: int) -> Operation:
    """Append rows that no other operation appends: appending rows twice doubles them, which no writer here does."""
    batch = Batch(first=first, rows=10)

    def run(spark: Any, aim: Target) -> object:
        change = AppendBatch(stream=f"appended {first}", batch=0)
        return publish(batch.frame(spark), aim, change=change, partitions=(), provenance=Provenance())

    return Operation(run, lambda rows: rows | batch.model())


def _erase(spark: Any, aim: Target) -> object:
    at = aim.lake.version(CONTRACT.dataset)
    assert at is not None
    left = aim.lake.read(spark, CONTRACT.dataset, at).where(f"NOT ({ERASED})")
    return publish(left, aim, change=Rewrite(at=at), partitions=(), provenance=Provenance())


def _by_spark(statement: str) -> Callable[[Any, Target], object]:
    def run(spark: Any, aim: Target) -> object:
        MERGED.frame(spark).createOrReplaceTempView("merged")
        return spark.sql(statement.format(table=f"delta.`{aim.lake.path(CONTRACT.dataset)}`")).collect()

    return run


def _without_erased(rows: State) -> State:
    return frozenset(row for row in rows if row[1] % 10 != 3)


def _merge(spark: Any, aim: Target) -> object:
    return merged(MERGED.frame(spark).selectExpr("*", "false AS is_deleted"), aim, Provenance())


MERGE = (
    "MERGE INTO {table} AS t USING merged AS s ON t.click = s.click "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
OPERATIONS = {
    "append": _append(1000),
    "overwrite": Operation(
        lambda spark, aim: overwrite_table(OVERWRITTEN.frame(spark), aim, Provenance()),
        lambda rows: OVERWRITTEN.model(),
    ),
    "merge": Operation(_merge, lambda rows: rows | MERGED.model()),
    "compact": Operation(lambda spark, aim: compact(spark, aim, ()), lambda rows: rows),
    "erase": Operation(_erase, _without_erased),
    "vacuum": Operation(_vacuum, lambda rows: rows, (LISTING,)),
    "MERGE": Operation(_by_spark(MERGE), lambda rows: rows | MERGED.model(), ()),
    "DELETE": Operation(_by_spark(f"DELETE FROM {{table}} WHERE {ERASED}"), _without_erased, ()),
    "OPTIMIZE": Operation(_by_spark("OPTIMIZE {table}"), lambda rows: rows, ()),
}
"""The last three are statements of Delta's own writer, which cannot be held."""
PAIRS = [(first, second) for first, held in OPERATIONS.items() for second in OPERATIONS if held.phases]
TWO_VACUUMS = ("vacuum", "vacuum")
CASES = [(*pair, phase) for pair in PAIRS if pair != TWO_VACUUMS for phase in OPERATIONS[pair[0]].phases]
TRIED = (
    ("append", "vacuum", "written"),
    ("erase", "overwrite", "audited"),
    ("compact", "append", "opened"),
    ("merge", "compact", "written"),
    ("overwrite", "append", "written"),
)
"""The cases of the suite: each own operation once, one refused, and a vacuum beside files of a running write."""
_CHANGE_ROWS = ("overwrite", "merge", "erase", "MERGE", "DELETE")
REFUSED = {
    *((first, second) for first in ("overwrite", "merge", "erase") for second in ("append", *_CHANGE_ROWS)),
    *(("compact", second) for second in ("compact", "OPTIMIZE", *_CHANGE_ROWS)),
}
"""The first one is refused when the second came in between: a transient error, and the next attempt sees its rows."""


class Stepped:
    """A table on which two operations meet."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.root = spark, root
        self.lake = Lake(root=str(root))
        self.folder = Path(self.lake.path(CONTRACT.dataset))

    def begin(self) -> None:
        """Make the table, with old files: two in one version, so that compaction has work, after an earlier version."""
        for number, batch in enumerate((REPLACED, Batch(first=0, rows=30))):
            overwrite_table(batch.frame(self.spark), self.target(f"before {number}"), Provenance())
        rest = Batch(first=30, rows=30)
        merged(rest.frame(self.spark).selectExpr("*", "false AS is_deleted"), self.target("rest"), Provenance())
        self.age()

    def age(self) -> None:
        then = time.time() - LONG_AGO
        for file in self.folder.rglob("*.parquet"):
            os.utime(file, (then, then))

    def leave(self) -> list[Path]:
        left = [self.folder / f"part-{number:05}-left.c000.snappy.parquet" for number in range(3)]
        for file in left:
            file.touch()
        self.age()
        return left

    def target(self, run: str, probe: Probe | None = None) -> Target:
        return target(self.root, run, contract=CONTRACT, probe=None if probe is None else str(probe.folder))

    def rows(self, version: int | None = None) -> State:
        rows = resting(self.root, CONTRACT.dataset, version)
        assert len(rows) == len(set(rows)), "no row is doubled"
        return frozenset(rows)


@pytest.fixture(scope="module")
def begun(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("begun") / "lake"
    Stepped(spark, root).begin()
    return root


@pytest.fixture
def stepped(spark: Any, begun: Path, tmp_path: Path) -> Stepped:
    return Stepped(spark, shutil.copytree(begun, tmp_path / "lake"))


@pytest.mark.matrix(1)
@pytest.mark.parametrize(
    ("first", "second", "phase"),
    [pytest.param(*case, marks=[] if case in TRIED else pytest.mark.campaign) for case in CASES],
    ids=lambda name: name,
)
def test_two_operations_end_serially_or_one_is_refused(
    stepped: Stepped, spark: Any, probe: Probe, first: str, second: str, phase: str
) -> None:
    slow, other = OPERATIONS[first], _append(2000) if second == "append" else OPERATIONS[second]
    before = BEFORE.model()
    assert stepped.rows() == before
    left = stepped.leave()
    with Held(lambda: slow.run(spark, stepped.target("first", probe)), probe, phase) as held:
        other.run(spark, stepped.target("second"))
        assert stepped.rows() == other.model(before), "nothing of the held operation is visible"
    if (first, second) in REFUSED:
        assert isinstance(held.error, ConcurrentWrite), held.error
        assert held.error.transient
        assert stepped.rows() == other.model(before), "never a mixture"
        slow.run(spark, stepped.target("first"))
        assert stepped.rows() == slow.model(other.model(before))
    else:
        assert held.error is None, held.error
        assert stepped.rows() in (slow.model(other.model(before)), other.model(slow.model(before)))
    if "vacuum" in (first, second):
        assert not [file for file in left if file.exists()]
        past = [stepped.rows(version) for version in (1, 2, 3)]
        assert past == [REPLACED.model(), Batch(first=0, rows=30).model(), before]


def test_the_docs_state_the_tested_outcomes() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "explanation" / "guarantees.md").read_text(encoding="utf-8")
    lines = [[cell.strip(" `*") for cell in line.strip("|").split("|")] for line in page.splitlines() if "|" in line]
    (header,) = [line for line in lines if line[0] == "held, then goes on"]
    rows = {line[0]: dict(zip(header[1:], line[1:], strict=True)) for line in lines if line[0] in OPERATIONS}
    refused = {(first, second) for first, cells in rows.items() for second, cell in cells.items() if cell == "refused"}
    assert {(first, second) for first in rows for second in rows[first]} == set(PAIRS)
    assert refused == REFUSED
