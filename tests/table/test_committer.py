"""Commits of files, without Spark: what delta-rs alone would get wrong, and of writers at once none is lost."""

from __future__ import annotations

import collections
import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.transaction import RemoveAction

from blogdata.errors import PlatformError
from blogdata.table import committer
from blogdata.table.committer import Mark, OpenCommit, Whole
from blogdata.table.faults import ConcurrentWrite
from blogdata.table.store import Store
from table.tables import DATASET, at_once, made, opened, replace, rows, with_second_row_removed, written


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A lake with a table of two partitions."""
    store = made(tmp_path / "lake")
    replace(store, "a", [1, 2], "first")
    replace(store, "b", [3], "second")
    return store


def _log(store: Store, version: int) -> list[dict[str, object]]:
    return [json.loads(line) for line in (_folder(store) / f"{version:020d}.json").read_text().splitlines()]


def _folder(store: Store) -> Path:
    return Path(store.path(DATASET)) / "_delta_log"


def _refused(store: Store, begun: OpenCommit, day: str) -> None:
    before = rows(store)
    with pytest.raises(ConcurrentWrite) as refused:
        begun.replace([day], written(store, day, [99]), {})
    assert refused.value.transient
    assert rows(store) == before, "nothing of it was published"


def test_a_partition_is_replaced_and_others_stay(store: Store) -> None:
    version = opened(store, "run").replace(["a"], written(store, "a", [7]), {"commit_id": "mine"})
    assert rows(store) == [("a", 7), ("b", 3)]
    assert rows(store, version - 1) == [("a", 1), ("a", 2), ("b", 3)], "the version before can be read"
    info = _log(store, version)[0]["commitInfo"]
    assert isinstance(info, dict)
    assert json.loads(info["userMetadata"]) == {"commit_id": "mine"}
    assert info["operationMetrics"]["numOutputRows"] == "1"
    assert info["isBlindAppend"] is False


def test_a_table_without_partitions_is_replaced_whole(tmp_path: Path) -> None:
    store = made(tmp_path / "lake", column=None)
    for click in (1, 2):
        opened(store, f"run {click}").replace(Whole.TABLE, written(store, "a", [click], partitioned=False), {})
    assert rows(store) == [("a", 2)]


@pytest.mark.parametrize("day", ["ü", "a b/c:%é", "x'y\"{z}[1]*?", "2026-01-05 00:00"])
def test_a_partition_of_any_name_is_replaced(store: Store, day: str) -> None:
    replace(store, day, [8], "one")
    replace(store, day, [9], "another")
    assert rows(store) == sorted([("a", 1), ("a", 2), ("b", 3), (day, 9)], key=str)


def test_a_commit_lost_to_one_of_another_partition_is_made_on_top(store: Store) -> None:
    late = opened(store, "late")
    between = replace(store, "b", [5], "early")
    assert late.replace(["a"], written(store, "a", [6]), {}) == between + 1
    assert rows(store) == [("a", 6), ("b", 5)]


@pytest.mark.parametrize("day", ["a", "c"], ids=["with rows", "empty"])
def test_a_commit_lost_to_one_of_the_same_partition_is_refused(store: Store, day: str) -> None:
    late = opened(store, "late")
    replace(store, day, [5], "early")
    _refused(store, late, day)


def test_a_change_of_any_partition_meanwhile_refuses_the_whole_table(store: Store) -> None:
    late = opened(store, "late")
    replace(store, "b", [5], "early")
    with pytest.raises(ConcurrentWrite):
        late.replace(Whole.TABLE, written(store, "a", [1]), {})
    assert rows(store) == [("a", 1), ("a", 2), ("b", 5)]


def test_checkpoints_come_as_often_as_the_table_says_and_know_its_batches(tmp_path: Path) -> None:
    store = made(tmp_path / "lake", properties={"delta.checkpointInterval": "3"})
    for number in range(7):
        assert not opened(store, "stream", number).repeated
        opened(store, "stream", number).append(written(store, "a", [number]), {})
    assert sorted(int(file.name[:20]) for file in _folder(store).glob("*.checkpoint.parquet")) == [3, 6]
    assert [opened(store, "stream", number).repeated for number in (1, 6, 7)] == [True, True, False]


def test_a_batch_takes_its_turn_among_all_of_the_table(store: Store) -> None:
    def begin(stream: str, number: int) -> OpenCommit:
        return opened(store, stream, turn=Mark(writer=DATASET, batch=number, lasts=True))

    slow = begin("one", 0)
    begin("two", 0).append(written(store, "a", [5]), {})
    with pytest.raises(ConcurrentWrite):
        slow.append(written(store, "a", [6]), {})
    with pytest.raises(ConcurrentWrite):
        begin("one", 0)
    begin("one", 1).append(written(store, "a", [6]), {})
    assert begin("two", 0).repeated, "a repetition is told before its turn is looked at"


def test_a_changed_schema_or_protocol_meanwhile_refuses(store: Store) -> None:
    late, later = opened(store, "late"), opened(store, "later")
    table = DeltaTable(store.path(DATASET))
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    _refused(store, late, "a")
    _refused(store, later, "c")


def test_a_compaction_meanwhile_is_harmless_to_an_overwrite(store: Store) -> None:
    late = opened(store, "late")
    both = opened(store, "compaction")
    both.exchange(both.files(["a"]), written(store, "a", [1, 2]), {}, reads=["a"], data_change=False)
    late.replace(["a"], written(store, "a", [6]), {})
    assert rows(store) == [("a", 6), ("b", 3)]


def test_a_compaction_lost_to_another_one_is_refused(store: Store) -> None:
    late, early = opened(store, "late"), opened(store, "early")
    early.exchange(early.files(["a"]), written(store, "a", [1, 2]), {}, reads=["a"], data_change=False)
    with pytest.raises(ConcurrentWrite):
        late.exchange(late.files(["a"]), written(store, "a", [1, 2]), {}, reads=["a"], data_change=False)
    assert rows(store) == [("a", 1), ("a", 2), ("b", 3)], "no row is doubled"


def test_a_table_that_only_grows_is_not_replaced(tmp_path: Path) -> None:
    store = made(tmp_path / "lake", properties={"delta.appendOnly": "true"})
    opened(store, "one").append(written(store, "a", [1]), {})
    with pytest.raises(PlatformError, match="only takes additional rows"):
        replace(store, "a", [2], "two")
    assert rows(store) == [("a", 1)]


def test_a_checksum_spares_spark_a_count_and_tells_of_the_newest_schema_and_protocol(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "_SEARCHED", 3)
    DeltaTable(store.path(DATASET)).alter.set_table_properties({"delta.checkpointInterval": "50"})
    altered = DeltaTable(store.path(DATASET)).version()
    for number in range(5):
        newest = replace(store, "c", [number], f"after {number}")
    (metadata,) = [line["metaData"] for line in _log(store, altered) if "metaData" in line]
    sizes = [file["size_bytes"] for file in opened(store, "reader").files(Whole.TABLE)]
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    counts = {"numFiles": len(sizes), "tableSizeBytes": sum(sizes), "numMetadata": 1, "numProtocol": 1}
    checksum = _folder(store) / f"{newest:020d}.crc"
    content = json.loads(checksum.read_text())
    assert content == {**counts, "metadata": metadata, "protocol": protocol}
    checksum.write_text(json.dumps({**content, "numDeletionVectorsOpt": 1}))
    newest = replace(store, "c", [7], "beside rows that are marked as removed")
    assert not (_folder(store) / f"{newest:020d}.crc").exists()


def _doctored(store: Store, old: str, new: str) -> None:
    """Rewrite a part of the newest commit, as another writer would have written it."""
    file = max(_folder(store).glob("*.json"))
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_a_file_whose_path_delta_rs_writes_otherwise_is_not_replaced(store: Store) -> None:
    (file,) = written(store, "ü", [4])
    moved = Path(store.path(DATASET)) / "day=ü" / "part-0.parquet"
    moved.parent.mkdir()
    (Path(store.path(DATASET)) / file.path).rename(moved)
    opened(store, "one").append([file], {})
    # Spark writes other than ASCII signs of a path as they are.
    _doctored(store, file.path, "day=ü/part-0.parquet")
    assert ("ü", 4) in rows(store)
    with pytest.raises(PlatformError, match="their rows would stay"):
        replace(store, "ü", [5], "two")
    replace(store, "a", [7], "three")


def test_delta_rs_alone_leaves_the_rows_of_such_a_file(store: Store) -> None:
    """Once this fails, delta-rs removes them, and the refusal can go."""
    test_a_file_whose_path_delta_rs_writes_otherwise_is_not_replaced(store)
    _removed_by_delta_rs(store, "day=ü/part-0.parquet", "ü")
    assert len(DeltaTable(store.path(DATASET)).file_uris()) == 3


def _removed_by_delta_rs(store: Store, path: str, day: str) -> None:
    table, gone = DeltaTable(store.path(DATASET)), RemoveAction(path, True, 1, 1, {"day": day})
    table.create_write_transaction([gone], "append", table.schema(), partition_by=["day"])
    assert DeltaTable(store.path(DATASET)).version() == table.version() + 1


@pytest.fixture
def marked(store: Store) -> Store:
    """The same table, with a row of partition `a` that is marked as removed in place."""
    replace(store, "a", [1, 2], "third")
    with_second_row_removed(store)
    assert rows(store) == [("a", 1), ("b", 3)]
    return store


def test_an_overwrite_dissolves_the_deletion_vectors_of_its_partition(marked: Store) -> None:
    replace(marked, "a", [7], "run")
    assert rows(marked) == [("a", 7), ("b", 3)]
    assert not DeltaTable(marked.path(DATASET)).deletion_vectors().read_all().num_rows


def test_a_file_with_removed_rows_is_not_exchanged_by_itself(marked: Store) -> None:
    begun = opened(marked, "run")
    with pytest.raises(PlatformError, match="they would return"):
        begun.exchange(begun.files(["a"]), written(marked, "a", [1]), {}, reads=["a"])
    begun.exchange(begun.files(["b"]), written(marked, "b", [4]), {}, reads=["b"])
    assert rows(marked) == [("a", 1), ("b", 4)]


def test_delta_rs_alone_leaves_the_rows_of_a_file_with_a_deletion_vector(marked: Store) -> None:
    """Once this fails, delta-rs removes them, and the refusal can go."""
    (file,) = opened(marked, "run").files(["a"])
    _removed_by_delta_rs(marked, file["path"], "a")
    assert rows(marked) == [("a", 1), ("b", 3)]


@pytest.mark.parametrize(("feature", "of_readers"), [("rowTracking", []), ("columnMapping", ["columnMapping"])])
def test_a_table_with_unknown_features_is_refused(store: Store, feature: str, of_readers: list[str]) -> None:
    features = {"readerFeatures": of_readers, "writerFeatures": [feature]}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    file = _folder(store) / f"{len(list(_folder(store).glob('*.json'))):020d}.json"
    file.write_text(json.dumps({"commitInfo": {"timestamp": 1}}) + "\n" + json.dumps({"protocol": protocol}) + "\n")
    with pytest.raises(PlatformError, match=feature):
        opened(store, "run")


def _overwrites(root: str, worker: int) -> tuple[int, int]:
    store, done, refused = Store(root=root), 0, 0
    for turn in range(9):
        day = f"p{worker}" if turn % 3 else "shared"
        try:
            replace(store, day, [worker * 100 + turn], f"{worker} {turn}")
            done += 1
        except ConcurrentWrite:
            refused += 1
    return done, refused


def test_of_four_writers_that_replace_partitions_none_loses_one(tmp_path: Path) -> None:
    store = made(tmp_path / "lake")
    counts = at_once(_overwrites, tmp_path / "lake", 4)
    assert all(done + refused == 9 and done >= 6 for done, refused in counts), "own partitions never conflict"
    assert DeltaTable(store.path(DATASET)).version() == sum(done for done, _ in counts)
    by_day = collections.Counter(day for day, _ in rows(store))
    assert by_day == {"shared": 1, "p0": 1, "p1": 1, "p2": 1, "p3": 1}
    assert {("p0", 8), ("p1", 108), ("p2", 208), ("p3", 308)} <= set(rows(store))


def _batches(root: str, worker: int) -> int:
    store, done = Store(root=root), 0
    for number in range(9):
        while not (begun := opened(store, "stream", number)).repeated:
            try:
                begun.append(written(store, "a", [number]), {})
                done += 1
            except ConcurrentWrite:
                continue
    return done


def test_of_twins_of_each_batch_one_commits_it(tmp_path: Path) -> None:
    store = made(tmp_path / "lake")
    done = at_once(_batches, tmp_path / "lake", 4)
    assert sum(done) == 9
    assert rows(store) == sorted([("a", number) for number in range(9)], key=str)
