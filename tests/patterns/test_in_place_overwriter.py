import bz2
import gzip
import lzma
import os
import signal
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from blogdata.errors import TransientError
from blogdata.landing import in_place_overwriter, sizes, vanished_lines
from blogdata.landing.in_place_overwriter import overwrite
from blogdata.landing.landed_formats import MARK, content, stored_as
from blogdata.landing.lines import FILLER
from blogdata.landing.sizes import LandedSize

ALICE, BOB = b'{"user_id": "alice"}', b'{"user_id": "bob", "x": "\xc3\xa4"}'
TEXT = MARK + b"\n".join([ALICE, BOB, b"", ALICE + b"\r", BOB, ALICE])
KEPT = MARK + b"\n".join([FILLER * 20, BOB, b"", FILLER * 21, BOB, FILLER * 20])
PACKED: dict[str | None, Callable[[bytes], bytes]] = {
    None: bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


def of_alice(lines: Iterable[tuple[int, bytes]]) -> set[int]:
    return {offset for offset, raw in lines if b"alice" in raw}


def put(folder: Path, packed: str | None = None, text: bytes = TEXT) -> Path:
    file = folder / "visits.json"
    file.write_bytes(PACKED[packed](text))
    return file


def read(file: Path) -> bytes:
    with content(file) as stream:
        return stream.read()


@pytest.mark.parametrize("packed", PACKED)
def test_lines_are_overwritten_and_no_other_byte_moves(tmp_path: Path, packed: str | None) -> None:
    file = put(tmp_path, packed)
    file.chmod(0o640)
    assert overwrite(file, of_alice) == 3
    assert read(file) == KEPT
    assert stored_as(file) == packed
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [file]


def test_a_second_call_writes_nothing(tmp_path: Path) -> None:
    file = put(tmp_path, "gzip")
    overwrite(file, of_alice)
    before = file.stat()
    assert overwrite(file, lambda lines: [offset for offset, raw in lines if b"bob" not in raw]) == 0
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_the_naive_way_moves_the_lines_of_others(tmp_path: Path) -> None:
    """Removing the bytes gives the lines behind other places; the overwriter leaves each where it was."""

    def places(file: Path) -> dict[int, bytes]:
        return {line.offset: line.raw for line in vanished_lines.landed_lines([file], tmp_path) if b"bob" in line.raw}

    before = places(put(tmp_path))
    overwrite(file := put(tmp_path), of_alice)
    assert places(file) == before
    assert places(put(tmp_path, text=TEXT.replace(ALICE, b""))) != before


def test_erased_lines_are_counted_and_are_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(tmp_path)
    before = sizes.measure(file)
    overwrite(file, of_alice)
    for chunk in (sizes.CHUNK, 17):
        monkeypatch.setattr(sizes, "CHUNK", chunk)
        assert sizes.measure(file) == LandedSize(lines=before.lines, bytes=before.bytes, erased=3, erased_bytes=64)
    assert [line.raw for line in vanished_lines.landed_lines([file], tmp_path)] == [BOB, b"", BOB]


def test_a_link_keeps_leading_to_its_file(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(file := put(tmp_path))
    overwrite(link, of_alice)
    assert (link.is_symlink(), file.read_bytes()) == (True, KEPT)


def test_a_file_that_grows_meanwhile_keeps_its_new_lines(tmp_path: Path) -> None:
    file = put(tmp_path)

    def grow(_: Path) -> None:
        with file.open("ab") as log:
            log.write(b"\nmore")

    with pytest.raises(TransientError, match="changed by somebody else"):
        overwrite(file, of_alice, before=grow)
    assert file.read_bytes() == TEXT + b"\nmore"


@pytest.mark.parametrize(("moment", "left"), [("within a line", TEXT), ("staged", TEXT), ("renamed", KEPT)])
def test_a_kill_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, left: bytes
) -> None:
    file, blank = put(tmp_path), in_place_overwriter._blank

    def die(*_: object) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    if not (child := os.fork()):
        try:
            if moment == "within a line":
                monkeypatch.setattr(in_place_overwriter, "_blank", lambda *given: die(blank(*given)))
            elif moment == "renamed":
                monkeypatch.setattr(in_place_overwriter, "sync", lambda path: path.is_dir() and die())
            overwrite(file, of_alice, before=die if moment == "staged" else lambda _: None)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert file.read_bytes() == left
    overwrite(file, of_alice)
    assert (file.read_bytes(), list(tmp_path.iterdir())) == (KEPT, [file])
