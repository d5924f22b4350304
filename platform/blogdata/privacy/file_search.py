"""Searches all files of a deployment for values: their bytes, and what a library reads in them.

An erasure that looks only where values are known to be proves nothing. So every file counts: its name, its bytes as
they are, the content of a compressed one, the rows of Parquet and of SQLite. What is not read is named: archives, and
other formats that hide text. No value is in the result.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from ahocorasick_rs import BytesAhoCorasick

from blogdata.landing.landed_formats import DAMAGED, HEAD, content, stored_as

_PART = 16 << 20
_ROWS = 20_000
_WORD = 8
"""A value of fewer bytes counts only as a whole word: it is part of too many others."""
_BOUND = 32
"""Signs that a table's log keeps of the least and the greatest text of a file."""
_SHORTEST, _SHORTEST_NUMBER = 4, 8
"""A value of fewer bytes is a word of any text, and digits are sizes and offsets of any log."""
_HIDING = (b"PK\x03\x04", b"\x04\x22\x4d\x18", b"LZ4Block", b"\x82SNAPPY", b"PARE")
"""How files begin that are not read: zip, LZ4 and snappy, as Spark writes them, and encrypted Parquet."""
_SST = ".sst"
"""Ending of files of RocksDB, whose blocks are compressed."""


@dataclass(frozen=True, kw_only=True)
class Searched:
    """The result of a search, by the path of a file below the home; a part of it that has a value is shown as `…`."""

    traces: Mapping[str, str]
    unsearched: Mapping[str, str]
    files: int


def is_searched_for(value: str) -> bool:
    """Return whether a value is long enough to be a person's wherever it stands."""
    return len(value.encode()) >= (_SHORTEST_NUMBER if value.isdecimal() else _SHORTEST)


def search(home: Path, values: Iterable[str], *, elsewhere: Mapping[str, Path] = MappingProxyType({})) -> Searched:
    """Search the files of a deployment."""
    finder, files = _Finder(values), 0
    traces: dict[str, str] = {}
    unsearched: dict[str, str] = {}
    for path, file in _files(home, elsewhere):
        files += 1
        masked = "/".join("…" if finder.is_in(os.fsencode(part)) else part for part in path.split("/"))
        ways = ["name"] if masked != path else []
        try:
            for how, parts in _readings(file):
                if finder.is_in_any(parts):
                    ways.append(how)
            if file.parent.name == "_delta_log" and any(map(finder.is_begun_at_the_end_of, _bounds(file))):
                ways.append("beginning in statistics")
        except _Unread as error:
            unsearched[masked] = str(error)
        except (*DAMAGED, pa.ArrowException, sqlite3.Error, ValueError) as error:
            unsearched[masked] = f"it cannot be read ({type(error).__name__})"
        if ways:
            traces[masked] = ", ".join(ways)
    return Searched(traces=traces, unsearched=unsearched, files=files)


class _Unread(Exception):
    """Raised when a file is of a format that is not read."""


class _Finder:
    """Finds values as they are, and as JSON and URLs write them."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values if value for form in (value, quote(value, safe=""), json.dumps(value)[1:-1])}
        encoded = sorted(form.encode("utf-8", "surrogatepass") for form in forms)
        self._begun = tuple({form[:signs] for form in forms for signs in range(_WORD, min(len(form), _BOUND + 1))})
        self._longest = max(map(len, encoded), default=0)
        self._patterns = BytesAhoCorasick(encoded) if encoded else None

    def is_in(self, data: bytes) -> bool:
        matches = self._patterns.find_matches_as_indexes(data, overlapping=True) if self._patterns else ()
        return any(
            end - begin >= _WORD or not (data[max(0, begin - 1) : begin].isalnum() or data[end : end + 1].isalnum())
            for _, begin, end in matches
        )

    def is_begun_at_the_end_of(self, bound: str) -> bool:
        return bound.endswith(self._begun)

    def is_in_any(self, parts: Iterable[bytes]) -> bool:
        before = b""
        for part in parts:
            if self.is_in(before + part):
                return True
            before = (before + part)[-self._longest :]
        return False


def _files(home: Path, elsewhere: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    """List all files, each once: those of another folder by its name, also if it lies within the home."""
    apart = {os.path.realpath(folder) for folder in elsewhere.values()}
    for place, root in {"": home, **elsewhere}.items():
        for folder, folders, files in os.walk(root):
            links = [name for name in folders if Path(folder, name).is_symlink()]
            folders[:] = sorted(name for name in folders if os.path.realpath(Path(folder, name)) not in apart)
            for file in (Path(folder, name) for name in sorted([*files, *links])):
                yield "/".join(filter(None, (place, file.relative_to(root).as_posix()))), file


def _readings(file: Path) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Read a file in each way that its first bytes ask for."""
    if file.is_symlink():
        # What it leads to is searched where it is, if that is part of the deployment.
        yield "link", [os.fsencode(file.readlink())]
        return
    if not file.is_file():
        raise _Unread("it is no regular file")
    with file.open("rb") as opened:
        head = opened.read(HEAD)
        opened.seek(0)
        yield "bytes", _parts(opened)
    if head.startswith(_HIDING) or file.suffix == _SST:
        raise _Unread("what is packed in it is not read")
    if head.startswith(b"PAR1"):
        yield "Parquet", _of_parquet(file)
    elif head.startswith(b"SQLite format 3\0"):
        yield "SQLite", _of_sqlite(file)
    elif packed := stored_as(file):
        with content(file) as unpacked:
            yield packed, _parts(unpacked)


def _bounds(file: Path) -> Iterator[str]:
    """Read the texts in the statistics of a table's log, or its checkpoint, that were cut."""
    actions = map(json.loads, file.read_bytes().splitlines()) if file.suffix == ".json" else ()
    if file.suffix == ".parquet":
        actions = iter(pq.read_table(file, columns=["add"]).to_pylist())
    for action in actions:
        objects: list[dict[str, object]] = []
        json.loads((action.get("add") or {}).get("stats") or "{}", object_hook=objects.append)
        texts = (text for values in objects for text in values.values() if isinstance(text, str))
        yield from (text[:_BOUND] for text in texts if len(text) >= _BOUND)


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    while part := file.read(_PART):
        yield part


def _of_parquet(file: Path) -> Iterator[bytes]:
    """Read all rows, column by column; those that a deletion vector marks, too."""
    for batch in pq.ParquetFile(file).iter_batches(batch_size=_ROWS):
        for column in batch.columns:
            if pa.types.is_nested(column.type):
                yield str(column.to_pylist()).encode()
            else:
                texts = column if pa.types.is_binary(column.type) else column.cast(pa.string()).cast(pa.binary())
                yield b"\n".join([b"", *filter(None, texts.to_pylist())])


def _of_sqlite(file: Path) -> Iterator[bytes]:
    """Read all rows: a long text lies on several pages. Those of a log of writes beside it, too, if there is one."""
    logged = file.with_name(f"{file.name}-wal").exists()
    with closing(sqlite3.connect(f"{file.as_uri()}?{'mode=ro' if logged else 'immutable=1'}", uri=True)) as database:
        database.text_factory = lambda text: text.decode(errors="replace")
        for statement in database.iterdump():
            yield statement.encode()
