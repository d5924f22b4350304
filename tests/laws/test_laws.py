"""Laws of every writer: run twice, interrupted, out of order, concurrent, too wide, empty, drifted.

Each law is stated once and holds for each writer; the table is compared with a model in plain Python.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from blogdata.contract.publication import Commit
from blogdata.errors import PlatformError
from blogdata.ledger import ledger
from blogdata.ledger.events import EventLog
from blogdata.table.faults import AuditFailed, ConcurrentWrite, WriteRefused
from blogdata.table.lake import Lake
from laws.stepping import Held, Probe
from laws.writers import SWAPPERS, WRITERS, Batch, Row, State, Writer
from toy import HOURS

pytestmark = pytest.mark.matrix(1000)
"""The suite tries the first case of a law, mostly; they begin with different writers."""
BEFORE = Batch(first=0, rows=60)
AFTER = Batch(first=40, rows=30)
NOT_PUBLISHED = ("opened", "written", "audited")
PHASES = ("committed", *NOT_PUBLISHED)

EVERY = (*WRITERS, *SWAPPERS)
ORDERS = ((1, 0, 2), (0, 2, 1), (0, 1, 2))
"""Orders of three batches of which the third replaces rows of the first, so it stays after it."""


def _from(name: str) -> list[Writer]:
    return sorted(EVERY, key=lambda writer: writer.name != name)


def _of_writers(more: str, chosen: Callable[[Writer], Iterable[Any]], first: str = "") -> pytest.MarkDecorator:
    cases = [(writer, value) for writer in _from(first) for value in chosen(writer)]
    return pytest.mark.parametrize(
        ("writer", more), [pytest.param(*case, id=f"{case[0].name}-{case[1]}") for case in cases]
    )


def _every_writer(first: str = "") -> pytest.MarkDecorator:
    return pytest.mark.parametrize("writer", _from(first), ids=lambda writer: writer.name)


def _partitioned(writers: Iterable[Writer]) -> pytest.MarkDecorator:
    chosen = [writer for writer in writers if writer.contract.partitioning]
    return pytest.mark.parametrize("writer", chosen, ids=lambda writer: writer.name)


every_writer = _every_writer()


class World:
    """A lake and the writer of one of its tables."""

    def __init__(self, spark: Any, root: Path, writer: Writer) -> None:
        self.spark, self.root, self.writer = spark, root, writer

    def write(self, batch: Batch, run: str, **how: Any) -> Commit:
        """Publish a batch; `change` alters its rows on the way."""
        change: Callable[[Any], Any] = how.pop("change", lambda frame: frame)
        aim = self.writer.target(self.root, run, **how)
        return self.writer.write(change(batch.frame(self.spark)), aim, batch, self.rows)

    def rows(self) -> State:
        """Read the rows as readers see them, without Spark, which would plan a query; fails on doubled rows."""
        contract = self.writer.contract
        read = Lake(root=str(self.root)).columns(contract.dataset, [column.name for column in contract.columns])
        rows = [tuple(row.values()) for row in read.to_pylist()]
        assert len(rows) == len(set(rows)), "no row is doubled"
        return frozenset(rows)

    def version(self) -> int | None:
        return Lake(root=str(self.root)).version(self.writer.contract.dataset)

    def problems(self) -> list[str]:
        lake = Lake(root=str(self.root))
        return [line.problem for line in ledger.audit(lake, EventLog(lake), self.writer.contract) if line.problem]


@pytest.fixture(scope="module")
def begun(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Writer], Path]:
    """Publishes the first batch of each requested writer, once."""

    @functools.cache
    def publish(name: str) -> Path:
        root = tmp_path_factory.mktemp(name) / "lake"
        World(spark, root, _from(name)[0]).write(BEFORE, "before")
        return root

    return lambda writer: publish(writer.name)


@pytest.fixture
def world(spark: Any, begun: Callable[[Writer], Path], tmp_path: Path, writer: Writer) -> World:
    """A table that has rows already."""
    return World(spark, shutil.copytree(begun(writer), tmp_path / "lake"), writer)


@_every_writer(first="overwrite_table")
def test_run_twice_is_run_once(world: World, writer: Writer) -> None:
    expected = writer.after(BEFORE.model(), AFTER)
    first = world.write(AFTER, "run")
    assert world.rows() == expected
    again = world.write(AFTER, "run")
    assert again.repeated
    assert again.version == first.version == world.version()
    world.write(AFTER, "another run")
    assert world.rows() == expected
    assert world.problems() == []


@_of_writers("phase", lambda writer: PHASES if writer in WRITERS else ("audited", "committed"))
def test_cut_off_and_run_again_is_run_once(world: World, writer: Writer, probe: Probe, phase: str) -> None:
    before, expected = BEFORE.model(), writer.after(BEFORE.model(), AFTER)
    version = world.version()
    assert version is not None
    probe.end(phase)
    with pytest.raises(Exception, match=f"the write was ended at {phase}"):
        world.write(AFTER, "run", probe=probe.folder)
    published = phase not in NOT_PUBLISHED and writer.published_by == "commit"
    assert world.rows() == (expected if published else before)
    assert world.version() == version + published
    assert world.problems() == [], "the ledger has exactly the published batches"
    commit = world.write(AFTER, "run")
    assert commit.repeated == published
    assert world.rows() == expected
    assert world.version() == version + 1
    assert world.problems() == []


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "".join(map(str, order)))
@pytest.mark.parametrize("writer", [writer for writer in WRITERS if writer.commutes], ids=lambda writer: writer.name)
def test_a_backfill_in_any_order_gives_one_table(
    spark: Any, lake_root: Path, writer: Writer, order: tuple[int, ...]
) -> None:
    parts = [Batch(first=0, rows=40, hours=HOURS[:1]), Batch(first=10, rows=40, hours=HOURS[1:])]
    parts.append(Batch(first=20, rows=10, hours=HOURS[:1]))
    expected: State = functools.reduce(writer.after, parts, frozenset[Row]())
    world = World(spark, lake_root, writer)
    for at in order:
        # One run publishes both hours, each as a batch of its own; a table without partitions, once.
        world.write(parts[at], f"run-{at if writer.contract.partitioning is None else at // 2}")
    assert world.rows() == expected
    assert world.problems() == []


@_of_writers(
    "phase",
    lambda writer: () if writer.adds else NOT_PUBLISHED if writer in WRITERS else NOT_PUBLISHED[-1:],
    first="load_copy",
)
def test_of_two_writers_at_once_one_publishes(world: World, writer: Writer, probe: Probe, phase: str) -> None:
    twin = Batch(first=200, rows=20)
    with Held(lambda: world.write(AFTER, "slow", probe=probe.folder), probe, phase) as slow:
        assert world.rows() == BEFORE.model(), "nothing of a running write is visible"
        world.write(twin, "fast")
    assert isinstance(slow.error, ConcurrentWrite)
    assert slow.error.transient
    assert world.rows() == writer.after(BEFORE.model(), twin), "never a mixture"
    world.write(AFTER, "slow")
    assert world.rows() == writer.after(writer.after(BEFORE.model(), twin), AFTER)
    assert world.problems() == []


@_of_writers("phase", lambda writer: NOT_PUBLISHED if writer.adds else ())
def test_of_two_writers_one_publishes_a_stream_batch(world: World, writer: Writer, probe: Probe, phase: str) -> None:
    with Held(lambda: world.write(AFTER, "slow", probe=probe.folder), probe, phase) as slow:
        fast = world.write(AFTER, "fast")
    assert isinstance(slow.error, ConcurrentWrite), slow.error
    assert slow.error.transient
    assert world.rows() == writer.after(BEFORE.model(), AFTER), "once"
    again = world.write(AFTER, "slow")
    assert (again.repeated, again.version) == (True, fast.version)
    assert world.version() == fast.version
    assert world.problems() == []


@_partitioned(_from("replace_periods"))
def test_rows_beside_the_declared_partitions_are_refused(world: World, writer: Writer) -> None:
    narrow = Batch(first=40, rows=30, hours=HOURS[:1])
    wide = Batch(first=40, rows=30).frame(world.spark)
    version = world.version()
    with pytest.raises(AuditFailed):
        world.write(narrow, "run", change=lambda frame: wide)
    assert (world.version(), world.rows()) == (version, BEFORE.model())


@_every_writer(first="merge")
def test_an_empty_input_is_published(world: World, writer: Writer) -> None:
    nothing = Batch(first=0, rows=0)
    commit = world.write(nothing, "run")
    expected = writer.after(BEFORE.model(), nothing)
    assert commit.rows_out == (0 if writer.adds else len(expected))
    assert world.rows() == expected
    assert world.problems() == []


def _with(column: str, sql: str) -> Callable[[Any], Any]:
    return lambda frame: frame.withColumn(column, F.expr(sql))


DRIFTS: dict[str, tuple[Callable[[Any], Any], type[Exception] | tuple[type[Exception], ...]]] = {
    "a column is gone": (lambda frame: frame.drop("page"), WriteRefused),
    "a column has another name": (lambda frame: frame.withColumnRenamed("page", "path"), WriteRefused),
    "text where numbers were": (_with("click", "concat('no number ', click)"), PlatformError),
    "null where none may be": (_with("click", "CAST(NULL AS BIGINT)"), AuditFailed),
    "a number too large": (_with("stands_for", "CAST(9223372036854775807 AS DECIMAL(38, 0)) + 1"), PlatformError),
}


@pytest.mark.campaign
@pytest.mark.parametrize("drift", DRIFTS)
@every_writer
def test_rows_of_another_shape_are_refused(world: World, writer: Writer, drift: str) -> None:
    change, error = DRIFTS[drift]
    version = world.version()
    with pytest.raises(error) as caught:
        world.write(AFTER, "run", change=change)
    assert isinstance(caught.value, PlatformError)
    assert caught.value.next_step
    assert (world.version(), world.rows()) == (version, BEFORE.model())
    world.write(AFTER, "run")
    assert world.rows() == writer.after(BEFORE.model(), AFTER)


@pytest.mark.campaign
@every_writer
def test_an_undeclared_column_is_left_out(world: World, writer: Writer) -> None:
    world.write(AFTER, "run", change=lambda frame: frame.withColumn("news", F.lit(1)))
    assert world.rows() == writer.after(BEFORE.model(), AFTER)


@_every_writer(first="append")
def test_a_vanished_row_is_refused(world: World, writer: Writer) -> None:
    version = world.version()
    with pytest.raises(AuditFailed, match="account"):
        world.write(AFTER, "run", change=lambda frame: frame.where("click <> 65"))
    assert (world.version(), world.rows()) == (version, BEFORE.model())


@every_writer
def test_a_row_that_came_twice_is_refused(world: World, writer: Writer) -> None:
    version = world.version()
    with pytest.raises((AuditFailed, WriteRefused)):
        world.write(AFTER, "run", change=lambda frame: frame.unionByName(frame.where("click = 65")))
    assert (world.version(), world.rows()) == (version, BEFORE.model())


@_partitioned(EVERY)
def test_a_run_finds_its_own_commit_among_others(world: World, writer: Writer, probe: Probe) -> None:
    mine, others = Batch(first=100, rows=20, hours=HOURS[:1]), Batch(first=200, rows=20, hours=HOURS[1:])
    commits: list[Commit] = []
    with Held(lambda: commits.append(world.write(mine, "mine", probe=probe.folder)), probe, "committed"):
        theirs = world.write(others, "theirs")
    between = 1 if writer.published_by == "swap" else -1
    assert (commits[0].version, list(commits[0].entries)) == (theirs.version + between, [HOURS[0]])
    assert world.problems() == []
