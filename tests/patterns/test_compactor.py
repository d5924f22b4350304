"""Small files become few, at rest or beside a stream; a publication that meets a compaction loses nothing.

Pattern: Compactor (:mod:`blogdata.table.compactor`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from blogdata.errors import PlatformError
from blogdata.ledger import ledger
from blogdata.ledger.claims import Claims
from blogdata.ledger.events import EventLog
from blogdata.runs import turns, upkeep
from blogdata.runs.upkeep import BUSY, Done, Fault, Upkeep, compact
from blogdata.table import compactor
from blogdata.table.compactor import AT_REST, CROWDED, MANY, DataFile
from blogdata.table.lake import Lake, rows_of_files
from blogdata.table.publish import publish
from blogdata.table.target import AppendBatch, Provenance
from blogdata.table.unneeded import READABLE
from laws.stepping import Held, Probe
from toy import CONTRACT, HOURS, clicks, resting, target

NOW = datetime(2026, 1, 6, tzinfo=timezone.utc)


def whole(results: Iterable[Done | Fault]) -> list[Done]:
    """Return what was done, after asserting that nothing failed."""
    listed = list(results)
    done = [result for result in listed if isinstance(result, Done)]
    assert done == listed
    return done


LONG_AGO = NOW - timedelta(days=1)
BATCHES, ROWS, FILES = 2, 60, 3
"""Batches that are appended, with so many rows each, in so many files of each hour."""
LIVE = replace(CONTRACT, reasons={}, stands_for="count(1)", audits=())


def some(number: int, *, partition: str = HOURS[0], size: int = 1000, at: datetime = LONG_AGO) -> list[DataFile]:
    return [DataFile(partition=partition, bytes=size, written_at=at)] * number


def due(found: list[DataFile], *, final: bool = True) -> dict[str, int]:
    return {key: len(small) for key, small in compactor.due(found, NOW, is_final=lambda key: final).items()}


def test_partitions_with_many_small_files_are_due() -> None:
    assert due([]) == {}
    assert due(some(MANY - 1) + some(MANY, partition=HOURS[1])) == {HOURS[1]: MANY}


def test_a_partition_that_is_added_to_is_left_until_it_is_crowded() -> None:
    latest = some(1, at=NOW - AT_REST + timedelta(seconds=1))
    assert due(some(CROWDED - 2) + latest) == {}
    assert due(some(CROWDED - 1) + latest) == {HOURS[0]: CROWDED}
    assert due(some(MANY) + some(1, at=NOW - AT_REST)) == {HOURS[0]: MANY + 1}


def append(spark: Any, root: Path, batch: int, probe: Probe | None = None, files: int = 1) -> None:
    """Append a batch, half of it to each hour, as a stream does."""
    aim = target(root, f"batch-{batch}", contract=LIVE, probe=str(probe.folder) if probe else None)
    change = AppendBatch(stream="clicks", batch=batch, turn=batch)
    rows = clicks(spark, ROWS, first=batch * ROWS, tasks=files)
    publish(rows, aim, change=change, partitions=HOURS, provenance=Provenance())


@pytest.fixture(scope="module")
def appended(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with the table after some batches."""
    root = tmp_path_factory.mktemp("appended") / "lake"
    for batch in range(BATCHES):
        append(spark, root, batch, files=FILES)
    return root


class Table:
    """The table, and runs that maintain it."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.root, self.lake = spark, root, Lake(root=str(root))
        self.events = EventLog(self.lake)

    def upkeep(self, probe: Probe | None = None, *, later: timedelta = 2 * AT_REST) -> Upkeep:
        @contextmanager
        def session() -> Iterator[Any]:
            yield self.spark

        aim = target(self.root, "maintain", contract=LIVE)
        now = datetime.now(timezone.utc) + later
        folder = str(probe.folder) if probe else None
        return Upkeep(
            lake=self.lake, events=self.events, contracts=[LIVE], run=aim.run, spark=session, now=now, probe=folder
        )

    def maintain(self, probe: Probe | None = None) -> list[Done]:
        return whole(upkeep.maintain(self.upkeep(probe), [compact]))

    def rows(self, version: int | None = None) -> list[tuple[Any, ...]]:
        return resting(self.root, LIVE.dataset, version)

    def files(self) -> list[int]:
        table = self.lake.caught_up(LIVE.dataset)
        assert table is not None
        return [file.bytes for file in compactor.files(table)]

    def expected(self, batches: int) -> list[tuple[Any, ...]]:
        return sorted((HOURS[n % 2], n, 1 + n % 3, f"/page{n % 5}") for n in range(batches * ROWS))

    def problems(self) -> list[str]:
        return [line.problem for line in ledger.audit(self.lake, self.events, LIVE) if line.problem]


@pytest.fixture
def table(spark: Any, appended: Path, tmp_path: Path) -> Table:
    return Table(spark, shutil.copytree(appended, tmp_path / "lake"))


def test_many_small_commits_become_one_file_a_partition(table: Table) -> None:
    before, version, history = table.files(), table.lake.version(LIVE.dataset), table.events.history(LIVE.dataset)
    assert len(before) == BATCHES * FILES * len(HOURS)
    (done,) = table.maintain()
    assert (done.partitions, done.files, done.bytes) == (len(HOURS), len(before), sum(before))
    assert (done.files_after, done.bytes_after, done.left) == (len(HOURS), sum(table.files()), "")
    assert done.bytes_after < sum(before) / 2
    read = [tuple(row) for row in table.lake.read(table.spark, LIVE.dataset).collect()]
    assert sorted(read) == table.rows() == table.rows(version) == table.expected(BATCHES)
    assert table.events.history(LIVE.dataset) == history, "it is no publication"
    assert table.problems() == []
    assert table.maintain() == []
    assert not Claims(table.lake, LIVE.dataset, alive=lambda claim: True).held()


def test_the_small_files_go_when_no_reader_can_need_them(table: Table) -> None:
    assert [done.action for done in whole(upkeep.maintain(table.upkeep()))] == ["compact"]
    assert whole(upkeep.maintain(table.upkeep(later=READABLE))) == []
    (done,) = whole(upkeep.maintain(table.upkeep(later=READABLE + timedelta(days=3))))
    assert (done.action, done.files) == ("vacuum", BATCHES * FILES * len(HOURS))
    folder = Path(table.lake.path(LIVE.dataset))
    sums = list(folder.glob("data/**/.*.parquet.crc"))
    assert len(list(folder.glob("data/**/[!.]*.parquet"))) == len(sums) == len(HOURS)
    assert table.rows() == table.expected(BATCHES)
    assert whole(upkeep.maintain(table.upkeep(later=READABLE + timedelta(days=3)))) == []
    append(table.spark, table.root, BATCHES)
    assert table.rows() == table.expected(BATCHES + 1)
    assert table.problems() == []


def test_a_stream_goes_on_beside_a_compaction(table: Table, probe: Probe) -> None:
    with Held(lambda: table.maintain(probe), probe, "audited") as held:
        append(table.spark, table.root, BATCHES)
        append(table.spark, table.root, BATCHES)
    assert held.error is None
    assert len(table.files()) == 2 * len(HOURS), "those of the compaction, and of the batch beside it"
    assert table.rows() == table.expected(BATCHES + 1)
    assert table.problems() == []


def test_a_dataset_that_is_being_published_is_left(table: Table) -> None:
    claims, owner = Claims(table.lake, LIVE.dataset, alive=turns.alive), turns.this_run()
    claims.take(["2026-01-05T23"], owner)
    version = table.lake.version(LIVE.dataset)
    assert [done.left for done in table.maintain()] == [BUSY]
    assert table.lake.version(LIVE.dataset) == version
    claims.release(["2026-01-05T23"], owner)


def test_a_compaction_cut_off_is_repeated(table: Table, tmp_path: Path) -> None:
    for phase in ("audited", "committed"):
        assert len(table.files()) == BATCHES * FILES * len(HOURS)
        probe = Probe(tmp_path / phase)
        probe.end(phase)
        with pytest.raises(Exception, match=f"the write was ended at {phase}"):
            table.maintain(probe)
        assert (table.rows(), table.problems()) == (table.expected(BATCHES), [])
    assert len(table.files()) == len(HOURS)
    assert table.maintain() == []


def test_a_compaction_that_would_change_rows_is_refused(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    version = table.lake.version(LIVE.dataset)
    monkeypatch.setattr(compactor, "rows_of_files", lambda *files: rows_of_files(*files).where("click <> 7"))
    aim = target(table.root, "maintain", contract=LIVE)
    with pytest.raises(PlatformError, match="a compaction would change the rows"):
        compactor.compact(table.spark, aim, HOURS)
    assert table.lake.version(LIVE.dataset) == version
