"""A compactor beside a stream, a writer, a backfill and readers, all in a loop; and one that is killed at ten moments.

Pattern: Compactor (:mod:`blogdata.patterns.ingestion.compactor`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from blogdata.evidence.claims import Claims
from blogdata.orchestration import owners
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.ingestion.compactor import MANY
from blogdata.publish.target import Provenance
from blogdata.publish.write_faults import ConcurrentWrite
from blogdata.services.spark_connect import SparkServer
from ingestion.test_compactor import BATCHES, LIVE, Table, append, appended
from laws.stepping import Probe
from toy import HOURS, clicks, target

__all__ = ("appended",)
pytestmark = pytest.mark.campaign
ROUNDS = 10
WRITTEN, FILLED = "2026-01-05T02", "2026-01-04T02"
PAUSE_SECONDS = 2
"""Between the rounds of a writer: a dataset that is always being published is never compacted."""
PATIENCE_SECONDS = 300


@pytest.fixture
def table(spark: Any, appended: Path, tmp_path: Path) -> Table:
    return Table(spark, shutil.copytree(appended, tmp_path / "lake"))


@contextmanager
def claimed(table: Table, hour: str) -> Iterator[None]:
    """Claim a partition, as a run does; wait while the compactor has it."""
    claims, owner = Claims(table.lake, LIVE.dataset, alive=owners.alive), owners.this_run()
    while not claims.take([hour], owner):
        time.sleep(0.05)
    try:
        yield
    finally:
        claims.release([hour], owner)


def retried(publish: Callable[[], object]) -> None:
    """Publish, and again while another commit comes first, as a run is retried."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            publish()
            return
        except ConcurrentWrite:
            time.sleep(0.1)
    raise AssertionError("it was refused each time")


def stream(table: Table) -> None:
    for batch in range(BATCHES, BATCHES + 2 * ROUNDS):
        retried(partial(append, table.spark, table.root, batch))


def overwrite(table: Table, hour: str, round_: int) -> None:
    aim = target(table.root, f"{hour} {round_}", contract=LIVE)
    overwrite_partitions(rows_of(table, hour, round_), aim, [hour], Provenance())


def rows_of(table: Table, hour: str, round_: int) -> Any:
    """Rows of an hour that differ from round to round."""
    return clicks(table.spark, 4 + round_, first=1_000_000 + round_).selectExpr(
        f"'{hour}' AS hour", "click", "stands_for", "page"
    )


def write(table: Table, hour: str) -> None:
    for round_ in range(ROUNDS):
        with claimed(table, hour):
            retried(partial(overwrite, table, hour, round_))
        time.sleep(PAUSE_SECONDS)


def read(table: Table, until: Sequence[Future[None]]) -> int:
    """Read one version by two readers until the others are done; no row that the stream has added ever leaves."""
    reads = streamed = 0
    while not all(actor.done() for actor in until):
        version = table.lake.version(LIVE.dataset)
        assert version is not None
        rows = [row for row in table.rows(version) if row[0] in HOURS]
        counted = table.lake.row_counts(LIVE.dataset, "hour", version)
        assert len({row[1] for row in rows}) == len(rows) == sum(counted[hour] for hour in HOURS) >= streamed
        reads, streamed = reads + 1, len(rows)
    return reads


def compact(table: Table, until: Sequence[Future[None]]) -> int:
    done = 0
    while not all(actor.done() for actor in until):
        done += sum(not one.left for one in table.maintain())
        time.sleep(0.2)
    return done


def test_all_at_once_the_tables_are_those_of_an_undisturbed_build(table: Table) -> None:
    with ThreadPoolExecutor(5) as pool:
        writers = [
            pool.submit(stream, table),
            pool.submit(write, table, WRITTEN),
            pool.submit(write, table, FILLED),
        ]
        reads, compactions = pool.submit(read, table, writers), pool.submit(compact, table, writers)
        for writer in writers:
            writer.result()
        assert reads.result() > 0
        assert compactions.result() > 0
    undisturbed = table.expected(BATCHES + 2 * ROUNDS)
    for hour in (WRITTEN, FILLED):
        undisturbed += [tuple(row) for row in rows_of(table, hour, ROUNDS - 1).collect()]
    assert table.rows() == sorted(undisturbed)
    assert table.problems() == []
    table.maintain()
    assert len(table.files()) <= MANY * len({*HOURS, WRITTEN, FILLED}), "the others are too few to be worth a rewrite"
    assert table.rows() == sorted(undisturbed)


COMPACTING = """
import sys
from pathlib import Path
from types import SimpleNamespace
from blogdata.services import spark_session
from ingestion.test_compactor import Table

Table(spark_session.attach(sys.argv[1]), Path(sys.argv[2])).maintain(SimpleNamespace(folder=Path(sys.argv[3])))
"""
MOMENTS = (
    ("claimed", None),
    ("opened", None),
    ("opened", 0.05),
    ("opened", 0.2),
    ("written", None),
    ("written", 0.05),
    ("audited", None),
    ("audited", 0.02),
    ("audited", 0.1),
    ("committed", None),
)
"""The phase, and the seconds after it until the process is killed; None: it is held at the phase when it is killed."""


@pytest.mark.parametrize(("phase", "delay"), MOMENTS)
def test_killed_at_any_moment_it_is_done_by_the_next_one(
    table: Table, probe: Probe, spark_server: SparkServer, phase: str, delay: float | None
) -> None:
    expected, claims = table.rows(), Claims(table.lake, LIVE.dataset, alive=owners.alive)
    probe.hold("opened" if phase == "claimed" else phase)
    command = [sys.executable, "-c", COMPACTING, spark_server.url, str(table.root), str(probe.folder)]
    tests = str(Path(__file__).parents[1])
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": tests}) as process:
        if phase == "claimed":
            while not claims.held():
                assert process.poll() is None
                time.sleep(0.005)
        else:
            assert probe.reached(phase, lambda: process.poll() is None)
        if delay is not None:
            probe.release()
            time.sleep(delay)
        process.kill()
    assert table.rows() == expected
    assert claims.held() == {}, "the claims of a dead process do not count"
    # What it has begun in the server continues, beside the next one.
    probe.release()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(table.files()) > len(HOURS):
        assert time.monotonic() < deadline
        table.maintain()
    assert (table.rows(), table.problems()) == (expected, [])
    assert table.maintain() == []
    append(table.spark, table.root, BATCHES)
    assert table.rows() == table.expected(BATCHES + 1)
