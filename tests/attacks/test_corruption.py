"""Bytes flipped by a disk and lost files: each is named, and the suggested remedy repairs the table."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blogdata.evidence import ledger, own_tables
from blogdata.evidence.claims import PARTITION_STATE, Claims
from blogdata.evidence.damage import Damage, DamageKind, inspect
from blogdata.evidence.event import Event
from blogdata.evidence.events import EVENTS, EventLog
from blogdata.evidence.repair import mend
from blogdata.lake import log_anew
from blogdata.lake.checksums import sums_of
from blogdata.lake.lake import Lake
from blogdata.lake.store_faults import DataFileDamaged, store_faults
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.publish.target import Provenance
from table_files import data_files, log_of
from toy import CONTRACT, HOURS, accounts, clicks, table, target

DATASET = CONTRACT.dataset
ROWS = 100


def publish(spark: Any, root: Path, run: str, hours: tuple[str, ...] = HOURS) -> None:
    given = {hour: account for hour, account in accounts(ROWS).items() if hour in hours}
    frame = clicks(spark, ROWS).where(f"hour IN ({', '.join(map(repr, hours))})")
    commit = overwrite_partitions(frame, target(root, run), hours, Provenance(accounts=given))
    EventLog(Lake(root=str(root))).record(commit)


@pytest.fixture(scope="module")
def whole(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with four publications, a checkpoint and a note about it; the last one has the second hour only."""
    root = tmp_path_factory.mktemp("corruption") / "lake"
    publish(spark, root, "first")
    spark.sql(f"ALTER TABLE delta.`{root}/silver/clicks` SET TBLPROPERTIES ('delta.checkpointInterval' = '2')")
    for run in ("second", "third"):
        publish(spark, root, run)
    EventLog(Lake(root=str(root))).append([Event(kind="noted", dataset=DATASET, payload={"note": 1})])
    publish(spark, root, "last", HOURS[1:])
    Claims(Lake(root=str(root)), DATASET, alive=lambda claim: True).take(HOURS, "owner")
    return root


@pytest.fixture
def lake(whole: Path, tmp_path: Path) -> Lake:
    """A copy of the whole table, to be damaged by one test."""
    return Lake(root=str(shutil.copytree(whole, tmp_path / "lake")))


def flip(file: Path, at: int, mask: int = 1) -> None:
    """Flip the bits of one byte as a disk does: size and checksum file stay the same."""
    content = bytearray(file.read_bytes())
    content[at % len(content)] ^= mask
    file.write_bytes(content)


def inspected(lake: Lake) -> list[Damage]:
    recorded = EventLog(lake).recorded(DATASET)
    return list(inspect(lake, DATASET, CONTRACT.partition_column, recorded=recorded))


def mended(lake: Lake) -> None:
    """Repair a table as the job `repair` does."""
    while damages := inspected(lake):
        mend(lake, EventLog(lake), CONTRACT, damages)
        if all(one.partition is not None or one.kind is DamageKind.CHECKSUMS for one in damages):
            return


def problems(lake: Lake) -> list[str]:
    return [line.problem for line in ledger.audit(lake, EventLog(lake), CONTRACT) if line.problem]


@pytest.fixture(scope="module")
def needed(whole: Path) -> list[Path]:
    lake = Lake(root=str(whole))
    files = [*data_files(lake), *(file for file in log_of(lake).iterdir() if file.is_file())]
    return sorted({*files, *(sums_of(file) for file in files if sums_of(file).exists())})


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_flipped_byte_of_a_table_is_named(whole: Path, needed: list[Path], data: st.DataObject) -> None:
    lake = Lake(root=str(whole))
    file = data.draw(st.sampled_from(needed))
    content = file.read_bytes()
    try:
        flip(file, data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(1, 255)))
        assert file in {one.file for one in inspected(lake)}
    finally:
        file.write_bytes(content)
    assert inspected(lake) == []


@pytest.mark.parametrize("dataset", [EVENTS, PARTITION_STATE])
def test_any_flipped_byte_of_the_platforms_own_tables_is_named(whole: Path, dataset: str) -> None:
    lake = Lake(root=str(whole))
    for file in [*data_files(lake, dataset), *log_of(lake, dataset).glob("*.json")]:
        content = file.read_bytes()
        for at in range(7, len(content), len(content) // 9):
            flip(file, at)
            found = own_tables.inspect_own(lake, [DATASET])
            file.write_bytes(content)
            assert file in {one.file for one in found[dataset]}
    assert own_tables.inspect_own(lake, [DATASET]) == {}


def changes_a_value(file: Path) -> int:
    """Find a byte whose change yields other values, without an error, in a reader that verifies nothing."""
    content = file.read_bytes()
    for at in range(4, len(content)):
        changed = bytearray(content)
        changed[at] ^= 1
        try:
            if not pq.ParquetFile(io.BytesIO(changed)).read().equals(pq.ParquetFile(file).read()):
                return at
        except Exception:  # noqa: BLE001 - every reader notices that byte
            continue
    raise AssertionError("no such byte")


@pytest.mark.parametrize("sums", [True, False], ids=["with its checksums", "without them"])
def test_no_reader_returns_other_values(spark: Any, lake: Lake, sums: bool) -> None:
    file = data_files(lake)[0]
    flip(file, changes_a_value(file))
    if not sums:
        sums_of(file).unlink()
    with pytest.raises(DataFileDamaged, match="blogdata job repair"), store_faults(DATASET):
        lake.read(spark, DATASET).collect()
    assert file in {one.file for one in inspected(lake)}
    if sums:
        with pytest.raises(DataFileDamaged, match="blogdata job repair"):
            lake.columns(DATASET, ["click"])


def gone(lake: Lake) -> Path:
    (file := data_files(lake)[0]).unlink()
    return file


def flipped_commit(lake: Lake) -> Path:
    """Change a figure in the commit's entry; it stays valid JSON."""
    file = max(log_of(lake).glob("*.json"))
    flip(file, file.read_bytes().index(b'numRecords\\":') + len(b'numRecords\\":'))
    return file


def flipped_hint(lake: Lake) -> Path:
    flip(file := log_of(lake) / "_last_checkpoint", 12)
    return file


HARMS = (gone, flipped_commit, flipped_hint)


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_the_remedy_brings_every_row_back(spark: Any, lake: Lake, harm: Callable[[Lake], Path]) -> None:
    expected = table(spark, Path(lake.root))
    file = harm(lake)
    assert file in {one.file for one in inspected(lake)}
    mended(lake)
    lost = sorted(set(HOURS) - EventLog(lake).publications(DATASET).keys())
    assert len(lost) <= 1
    if lost:
        publish(spark, Path(lake.root), "again", tuple(lost))
    assert table(spark, Path(lake.root)) == expected
    assert (inspected(lake), problems(lake)) == ([], [])


def killed(*given: Any, **how: Any) -> None:
    """Stop here, as a process that is killed."""
    raise KeyboardInterrupt


def file_of_the_note(lake: Lake) -> Path:
    (file,) = [one for one in data_files(lake, EVENTS) if "noted" in pq.ParquetFile(one).read(["kind"])[0].to_pylist()]
    return file


def harmed(lake: Lake, harm: str) -> None:
    log = sorted(log_of(lake, EVENTS).glob("*.json"))
    match harm:
        case "first entry gone":
            log[0].unlink()
        case "entry gone":
            log[1].unlink()
        case "newest entry gone":
            log[-1].unlink()
        case "entry flipped":
            flip(log[2], log[2].read_bytes().index(b"numRecords") + 14)
        case "file flipped":
            flip(file_of_the_note(lake), 60)
        case "file gone":
            file_of_the_note(lake).unlink()


@pytest.mark.parametrize(
    "harm",
    ["first entry gone", "entry gone", "newest entry gone", "entry flipped", "file flipped", "file gone"],
)
@pytest.mark.parametrize("dies", [None, "write_deltalake", "seal"], ids=["", "killed at first", "killed late"])
def test_a_damaged_event_log_is_made_again(
    lake: Lake, harm: str, dies: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = EventLog(lake)
    before, notes = events.history(DATASET), [event.payload for event in events.notes("noted")]
    assert notes == [{"note": 1}]
    harmed(lake, harm)
    found = own_tables.inspect_own(lake, [DATASET])
    assert list(found) == [EVENTS]
    if dies:
        with monkeypatch.context() as patch:
            patch.setattr(log_anew, dies, killed)
            with pytest.raises(KeyboardInterrupt):
                own_tables.mend_own(lake, EVENTS, [DATASET])
        assert list(own_tables.inspect_own(lake, [DATASET])) == [EVENTS], "the damage is unchanged"
    done = own_tables.mend_own(lake, EVENTS, [DATASET])
    assert own_tables.inspect_own(lake, [DATASET]) == {}
    assert events.history(DATASET) == before
    kept = [event.payload for event in events.notes("noted")]
    lost = "notes of 1 of its files are lost" in done
    assert (kept, lost) == (([], True) if harm.startswith("file") else (notes, False))
    assert problems(lake) == []
    events.append([Event(kind="noted", dataset=DATASET, payload={"note": 2})])
    assert len(events.notes("noted")) == len(kept) + 1


def test_a_missing_publication_is_found(lake: Lake) -> None:
    # Simulates a lost append together with its log entry: the log itself shows no gap.
    before = EventLog(lake).history(DATASET)
    oldest = before[0].version
    (file,) = [
        one
        for one in data_files(lake, EVENTS)
        if oldest in pq.ParquetFile(one).read(["table_version"]).column(0).to_pylist()
    ]
    DeltaTable(lake.path(EVENTS)).delete(f"table_version = {oldest}")
    file.unlink()
    (found,) = own_tables.inspect_own(lake, [DATASET])[EVENTS]
    assert found.problem == f"2 publications of {DATASET} are missing from it"
    own_tables.mend_own(lake, EVENTS, [DATASET])
    assert own_tables.inspect_own(lake, [DATASET]) == {}
    assert EventLog(lake).history(DATASET) == before


def test_claims_are_forgotten(lake: Lake) -> None:
    claims = Claims(lake, DATASET, alive=lambda claim: True)
    assert claims.take(HOURS, "another") == []
    min(log_of(lake, PARTITION_STATE).glob("*.json")).unlink()
    assert list(own_tables.inspect_own(lake, [DATASET])) == [PARTITION_STATE]
    own_tables.mend_own(lake, PARTITION_STATE, [DATASET])
    assert own_tables.inspect_own(lake, [DATASET]) == {}
    assert claims.take(HOURS, "another") == list(HOURS)
