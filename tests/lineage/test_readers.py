"""Concurrent readers see partitions only as they were audited: none partial, empty or doubled."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from blogdata.orchestration.step import Step
from blogdata.services import spark_session
from blogdata.simulator.faults import FaultRates
from blogdata.simulator.spec import SimulationSpec
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.phases import IN_THE_ENGINE, Hold
from lineage.runs import Background

DAY = "2026-01-05"
HOURS = ("2026-01-05T00", "2026-01-05T01", "2026-01-05T02")
SPEC = SimulationSpec(
    days=1, visits_per_day=800, seed=11, faults=FaultRates.none(duplicate=0.1, conflict=0.1, not_json=0.05, late=0.2)
)
# Table to its partition column, and the columns that identify its rows.
WATCHED = {
    "bronze.visits": ("arrival_hour", "source_file", "source_offset"),
    "silver.visits": ("event_hour", "source_file", "source_offset", "occurrences"),
    "gold.page_stats": ("event_date", "page", "events"),
}
State = tuple[tuple[Any, ...], ...]
States = Mapping[tuple[str, str], State]
Read = Callable[[str], list[tuple[Any, ...]]]


def states(read: Read, tables: Mapping[str, tuple[str, ...]] = WATCHED) -> States:
    """Return the rows of every partition of the watched tables, by (table, partition)."""
    found: dict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
    for table in tables:
        for row in read(table):
            found[table, row[0]].append(row)
    return {key: tuple(sorted(rows)) for key, rows in found.items()}


class Reader:
    """Reads in a loop, and stores every state it ever saw of a partition."""

    def __init__(self, read: Read) -> None:
        self.seen: dict[tuple[str, str], set[State]] = defaultdict(set)
        self.rounds = 0
        self._read = read
        self._error: BaseException | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop)

    def start(self) -> None:
        """Start to read."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current round."""
        self._ended.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def look(self) -> None:
        """Wait until a whole round has begun and ended."""
        wanted, deadline = self.rounds + 2, time.monotonic() + 900
        while self.rounds < wanted and self._thread.is_alive():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def _loop(self) -> None:
        try:
            while not self._ended.is_set():
                now = states(self._read)
                for key in {*self.seen, *now}:
                    self.seen[key].add(now.get(key, ()))
                self.rounds += 1
        except BaseException as error:  # noqa: BLE001 - raised again by stop()
            self._error = error


class Readers:
    """One reader with Spark and one with delta-rs, reading while the block runs."""

    def __init__(self, deployment: Deployment) -> None:
        remote = deployment.settings.spark.remote
        assert remote is not None
        self._session = spark_session.attach(remote)
        self._all = [Reader(self._with_spark), Reader(lambda table: deployment.rows(table, *WATCHED[table]))]
        self._path = deployment.lake.path

    def __enter__(self) -> Readers:
        """Start; every reader has read everything once."""
        for reader in self._all:
            reader.start()
        self.look()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop both readers."""
        try:
            for reader in self._all:
                reader.stop()
        finally:
            spark_session.release(self._session)

    def look(self) -> None:
        """Make every reader read everything once more."""
        for reader in self._all:
            reader.look()

    def saw_only(self, *legal: States) -> None:
        """Check that every partition was seen in its legal states only."""
        for reader in self._all:
            assert reader.rounds > 3
            assert set(reader.seen) == {key for one in legal for key in one}
            for key, found in reader.seen.items():
                assert found <= {one.get(key, ()) for one in legal}, key

    def _with_spark(self, table: str) -> list[tuple[Any, ...]]:
        frame = self._session.read.format("delta").load(self._path(table)).select(*WATCHED[table])
        return [tuple(row) for row in frame.collect()]


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    """Three hours, published."""
    world = deploy("world")
    world.simulate(SPEC)
    made = deploy("read")
    made.copy_hours(world, HOURS)
    assert made.run().problems == []
    return made


def now(deployment: Deployment) -> States:
    """Return the published partitions."""
    return states(lambda table: deployment.rows(table, *WATCHED[table]))


@pytest.mark.campaign
def test_readers_never_see_an_unordered_backfill(deployment: Deployment) -> None:
    before = now(deployment)
    versions = deployment.versions()
    with Readers(deployment) as readers:
        for hour in (HOURS[2], HOURS[0]):
            assert deployment.run(hours=(hour, hour), select=list(WATCHED)).problems == []
        readers.look()
    assert all(deployment.versions()[table] >= versions[table] + 2 for table in WATCHED)
    readers.saw_only(before)


@pytest.mark.campaign
@pytest.mark.matrix(3)
@pytest.mark.parametrize(
    ("dataset", "spoil"),
    [
        ("bronze.visits", lambda rows: rows.where("source_offset > 0")),
        ("silver.visits", lambda rows: rows.unionByName(rows.limit(1))),
        ("gold.page_stats", lambda rows: rows.limit(1)),
    ],
    ids=["a line is lost", "a visit comes twice", "pages are lost"],
)
def test_readers_never_see_rows_of_refused_runs(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset: str, spoil: Callable[[Any], Any]
) -> None:
    before, versions = now(deployment), deployment.versions()
    # Whatever way the dataset is written, its rows are bad.
    publish = Step.publish

    def spoiled(step: Step, rows: Any, *more: Any, **others: Any) -> Any:
        return publish(step, spoil(rows) if step.contract.dataset == dataset else rows, *more, **others)

    monkeypatch.setattr(Step, "publish", spoiled)
    hold = Hold(tmp_path / "hold", dataset, "written").prepare().install(monkeypatch)
    with Readers(deployment) as readers, Background(deployment, (dataset,), DAY) as run:
        hold.reached("written", lambda: run.working)
        # The bad rows are files in the table's folder now, but not visible.
        readers.look()
        hold.release()
        assert run.outcome().problems
        readers.look()
    readers.saw_only(before)
    assert deployment.versions() == versions


@pytest.mark.campaign
def test_readers_see_late_rows_only_after_the_commit(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = now(deployment)
    (first, *_) = sorted(deployment.folder(HOURS[1]).glob("*.json"))
    lines = [line.replace(b'"visit_id"', b'"visit_id" ') for line in first.read_bytes().splitlines()[:5]]
    deployment.land(HOURS[1], [*lines, b"{........"], name="visits-late.json")
    hold = Hold(tmp_path / "hold", "bronze.visits", *IN_THE_ENGINE).prepare().install(monkeypatch)
    key = ("bronze.visits", HOURS[1])
    with Readers(deployment) as readers:
        with Background(deployment) as run:
            for phase in IN_THE_ENGINE[:3]:
                hold.reached(phase, lambda: run.working)
                readers.look()
                readers.saw_only(before)
                hold.let_go(phase)
            hold.reached("committed", lambda: run.working)
            # The run is still in progress, and six more rows are visible, all at once.
            readers.look()
            published = now(deployment)
            assert len(published[key]) == len(before[key]) + 6
            hold.release()
            assert run.outcome().problems == []
        readers.look()
    readers.saw_only(before, published, now(deployment))
    assert deployment.problems() == []


@pytest.mark.campaign
def test_delete_then_append_shows_an_empty_partition(deployment: Deployment, tmp_path: Path) -> None:
    rows = DeltaTable(deployment.lake.path("gold.page_stats")).to_pyarrow_table()
    naive = str(tmp_path / "naive")
    write_deltalake(naive, rows, partition_by=["event_date"])

    def read(table: str) -> list[tuple[Any, ...]]:
        found = DeltaTable(naive).to_pyarrow_table(columns=list(WATCHED[table])).to_pydict()
        return list(zip(*found.values(), strict=True))

    watched = {"gold.page_stats": WATCHED["gold.page_stats"]}
    before = states(read, watched)
    DeltaTable(naive).delete(f"event_date = '{DAY}'")
    between = states(read, watched)
    write_deltalake(naive, rows, mode="append")
    assert states(read, watched) == before
    assert between == {}
