from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from blogdata.errors import PlatformError
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
from toy import CONTRACT, HOURS, clicks, copies_of, problems, resting, run_context, target

NOW = datetime(2026, 1, 6, tzinfo=timezone.utc)
BATCHES, ROWS, FILES = 2, 60, 3
"""Batches that are appended, with so many rows each, in so many files of each hour."""
LIVE = replace(CONTRACT, reasons={}, stands_for="count(1)", audits=())


def whole(outcomes: Iterable[Done | Fault]) -> list[Done]:
    outcomes = list(outcomes)
    assert [outcome.error for outcome in outcomes if isinstance(outcome, Fault)] == []
    return [outcome for outcome in outcomes if isinstance(outcome, Done)]


def small(number: int, *, partition: str = HOURS[0], at: datetime = NOW - timedelta(days=1)) -> list[DataFile]:
    return [DataFile(partition=partition, bytes=1000, written_at=at)] * number


LATEST = small(1, at=NOW - AT_REST + timedelta(seconds=1))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([], {}),
        (small(MANY - 1) + small(MANY, partition=HOURS[1]), {HOURS[1]: MANY}),
        # A partition that is added to is left until it is crowded.
        (small(CROWDED - 2) + LATEST, {}),
        (small(CROWDED - 1) + LATEST, {HOURS[0]: CROWDED}),
        (small(MANY) + small(1, at=NOW - AT_REST), {HOURS[0]: MANY + 1}),
    ],
)
def test_partitions_with_many_small_files_are_due(files: list[DataFile], expected: dict[str, int]) -> None:
    assert {key: len(due) for key, due in compactor.due(files, NOW, is_final=lambda key: True).items()} == expected


def append(spark: Any, root: Path, batch: int, files: int = 1) -> None:
    """Append a batch, half of it to each hour, as a stream does."""
    change = AppendBatch(stream="clicks", batch=batch, turn=batch)
    rows = clicks(spark, ROWS, first=batch * ROWS, tasks=files)
    into = target(root, f"batch-{batch}", contract=LIVE)
    publish(rows, into, change=change, partitions=HOURS, provenance=Provenance())


class Table:
    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.root, self.lake = spark, root, Lake(root=str(root))
        self.events = EventLog(self.lake)

    def upkeep(self, probe: Probe | None = None, *, later: timedelta = 2 * AT_REST) -> Upkeep:
        return Upkeep(
            lake=self.lake,
            events=self.events,
            contracts=[LIVE],
            run=run_context("maintain"),
            spark=lambda: nullcontext(self.spark),
            now=datetime.now(timezone.utc) + later,
            probe=str(probe.folder) if probe else None,
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


def batches(spark: Any, root: Path) -> None:
    for batch in range(BATCHES):
        append(spark, root, batch, files=FILES)


table = copies_of(batches, Table)


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
    assert problems(table.lake, LIVE) == []
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
    assert problems(table.lake, LIVE) == []


def test_a_stream_goes_on_beside_a_compaction(table: Table, probe: Probe) -> None:
    with Held(lambda: table.maintain(probe), probe, "audited") as held:
        append(table.spark, table.root, BATCHES)
        append(table.spark, table.root, BATCHES)
    assert held.error is None
    assert len(table.files()) == 2 * len(HOURS), "those of the compaction, and of the batch beside it"
    assert table.rows() == table.expected(BATCHES + 1)
    assert problems(table.lake, LIVE) == []


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
        assert (table.rows(), problems(table.lake, LIVE)) == (table.expected(BATCHES), [])
    assert len(table.files()) == len(HOURS)
    assert table.maintain() == []


def test_a_compaction_that_would_change_rows_is_refused(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    version = table.lake.version(LIVE.dataset)
    monkeypatch.setattr(compactor, "rows_of_files", lambda *files: rows_of_files(*files).where("click <> 7"))
    into = target(table.root, "maintain", contract=LIVE)
    with pytest.raises(PlatformError, match="a compaction would change the rows"):
        compactor.compact(table.spark, into, HOURS)
    assert table.lake.version(LIVE.dataset) == version
