import json
import shutil
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blogdata.errors import PlatformError
from blogdata.patterns.error_management.checkpointer import (
    Checkpoint,
    StreamSpec,
    checkpoints,
    open_checkpoint,
    stream_offset_rows,
)

SPEC = StreamSpec(
    name="visits",
    source={"kind": "files", "place": "/landing/visits"},
    schema="raw BINARY",
    key=("visit_id", "page"),
    watermark="max less 0:15:00",
)


def write(file: Path, text: str) -> None:
    """Write a file and its checksum file, as Hadoop does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    file.write_bytes(content)
    sums = (struct.pack(">I", zlib.crc32(content[at : at + 512])) for at in range(0, len(content), 512))
    file.with_name(f".{file.name}.crc").write_bytes(b"crc\0" + struct.pack(">i", 512) + b"".join(sums))


def used(checkpoint: Checkpoint, batches: int, *, committed: int, log: dict[str, list[int]]) -> Checkpoint:
    """Fill a checkpoint as Spark does; batch n reads up to entry n of the source's log."""
    root = Path(checkpoint.location)
    write(root / "metadata", '{"id":"0a1b2c3d-0000-0000-0000-000000000000"}')
    for number in range(batches):
        head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1_767_571_200_000 + number, "conf": {}})
        write(root / "offsets" / str(number), f'v1\n{head}\n{{"logOffset":{number}}}')
    for number in range(committed):
        write(root / "commits" / str(number), 'v1\n{"nextBatchWatermarkMs":0}')
    for name, entries in log.items():
        paths = [(f"file:///landing/visits/date=2026-01-05/hour=00/a%20{number}.json", number) for number in entries]
        lines = [json.dumps({"path": path, "timestamp": 0, "batchId": number}) for path, number in paths]
        write(root / "sources" / "0" / name, "\n".join(["v1", *lines]))
    return checkpoint


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """A checkpoint whose second batch is planned."""
    return used(open_checkpoint(tmp_path, SPEC), 2, committed=1, log={"0": [0], "1": [1]})


def path(number: int) -> str:
    return f"/landing/visits/date=2026-01-05/hour=00/a {number}.json"


def test_a_stream_goes_on_with_its_own_checkpoint(tmp_path: Path) -> None:
    first = open_checkpoint(tmp_path, SPEC)
    assert (first.number, first.identity) == (1, None)
    used(first, 2, committed=1, log={"0": [0], "1": [1]})
    again = open_checkpoint(tmp_path, SPEC)
    assert again == first
    assert again.writer == "visits-0a1b2c3d"
    assert [(batch.number, batch.committed) for batch in again.batches()] == [(0, True), (1, False)]
    assert again.files(1) == (path(1),)
    with pytest.raises(PlatformError, match="is not there"):
        again.files(7)


def test_a_batch_has_all_files_since_the_last(tmp_path: Path) -> None:
    log = {"0": [0], "1": [1], "2": [2], "3": [3]}
    checkpoint = used(open_checkpoint(tmp_path, SPEC), 2, committed=2, log=log)
    write(Path(checkpoint.location) / "offsets" / "2", 'v1\n{"batchTimestampMs":0}\n{"logOffset":3}')
    assert checkpoint.files(2) == (path(2), path(3))


def test_a_compacted_log_is_read_once_and_uncommitted_files_are_unfinished(tmp_path: Path) -> None:
    log = {"8": [8], "9.compact": list(range(10)), "10": [10], "11": [11]}
    checkpoint = used(open_checkpoint(tmp_path, SPEC), 11, committed=10, log=log)
    assert [checkpoint.files(number) for number in (0, 8, 9, 10)] == [(path(n),) for n in (0, 8, 9, 10)]
    assert checkpoint.every_file() == {path(number) for number in range(12)}
    assert checkpoint.unfinished() == (path(10), path(11))
    write(Path(checkpoint.location) / "commits" / "10", 'v1\n{"nextBatchWatermarkMs":0}')
    assert checkpoint.unfinished() == (path(11),)


def test_the_offsets_are_a_table(tmp_path: Path, checkpoint: Checkpoint) -> None:
    open_checkpoint(tmp_path, replace(SPEC, name="unused"))
    rows = [(*row[:5], list(row[5]), row[6]) for row in stream_offset_rows(tmp_path)]
    assert rows == [
        ("visits", 1, 0, 0, '{"logOffset":0}', [path(0)], True),
        ("visits", 1, 1, 0, '{"logOffset":1}', [path(1)], False),
    ]
    (Path(checkpoint.location) / "offsets" / "0").unlink()
    assert [list(row[5]) for row in stream_offset_rows(tmp_path)] == [[path(1)]], "the oldest retained one, too"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"key": ("visit_id",)}, "key"),
        ({"watermark": "max less 0:30:00"}, "watermark"),
        ({"schema": "raw STRING"}, "schema"),
        ({"source": {"kind": "files", "place": "/elsewhere"}}, "source"),
    ],
)
def test_a_changed_stream_is_refused_until_it_has_a_new_checkpoint(
    tmp_path: Path, checkpoint: Checkpoint, change: dict[str, Any], named: str
) -> None:
    changed = replace(SPEC, **change)
    with pytest.raises(PlatformError, match=f"has changed since.*{named} was") as refused:
        open_checkpoint(tmp_path, changed)
    assert "--new-checkpoint" in refused.value.next_step
    renewed = open_checkpoint(tmp_path, changed, renew=True)
    assert (renewed.number, renewed.identity) == (2, None)
    assert open_checkpoint(tmp_path, changed) == renewed
    assert checkpoints(tmp_path, "visits") == [checkpoint, renewed]


def test_a_copied_folder_is_not_a_checkpoint(tmp_path: Path, checkpoint: Checkpoint) -> None:
    for name in ("v1.bak", "v", "v01", "vold"):
        shutil.copytree(checkpoint.folder, checkpoint.folder.with_name(name))
    assert checkpoints(tmp_path) == [checkpoint]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda content: content[:-4],
    "empty": lambda content: b"",
    "one byte": lambda content: content[:-3] + b"?" + content[-2:],
    "no text": lambda content: b"\xff" * len(content),
    "plausible": lambda content: content.replace(b"0", b"1"),
}


@pytest.mark.parametrize(
    ("damage", "sums"), [*((damage, True) for damage in DAMAGE), *((it, False) for it in [*DAMAGE][:4])]
)
@pytest.mark.parametrize("name", ["metadata", "offsets/1", "commits/0", "sources/0/1"])
def test_opening_a_checkpoint_names_its_damaged_file(
    tmp_path: Path, checkpoint: Checkpoint, name: str, damage: str, sums: bool
) -> None:
    file = Path(checkpoint.location) / name
    file.write_bytes(DAMAGE[damage](file.read_bytes()))
    if not sums:
        file.with_name(f".{file.name}.crc").unlink()
    with pytest.raises(PlatformError, match="a file of the checkpoint") as refused:
        open_checkpoint(tmp_path, SPEC)
    assert refused.value.where == str(file)
    assert "blogdata stream visits --new-checkpoint" in refused.value.next_step
