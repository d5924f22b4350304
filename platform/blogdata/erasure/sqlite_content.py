"""What is in a SQLite file: its rows, and the texts that stretch over several of its pages, free pages included.

Pages are not compressed, so the bytes of the file show most of its texts, deleted ones and those of a write-ahead log
included. A text that does not fit on one page goes on at the beginning of others
(https://www.sqlite.org/fileformat2.html): these are read here, whether a row still leads to them or not.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from blogdata.erasure.readings import Reading, Unread

_DATABASE = b"SQLite format 3\x00"
_LOG = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_LOG_HEADER, _FRAME_HEADER = 32, 24
_MARGIN = 512
"""Bytes on both sides of a seam: no value is longer."""


def is_one(data: bytes) -> bool:
    """Return whether some bytes are a database, or its write-ahead log."""
    return data.startswith((_DATABASE, *_LOG))


def read(data: bytes) -> Iterator[Reading | Unread]:
    """Read the rows, and the texts that go on from page to page.

    Args:
        data: Bytes of the file.
    """
    if data.startswith(_DATABASE):
        yield from _rows(data)
        pages = _pages(data)
    else:
        pages = _logged(data)
    if seams := list(_seams(pages)):
        yield Reading(how="SQLite's pages", data=b"\n".join([b"", *seams]))


def _pages(data: bytes) -> list[tuple[int, bytes]]:
    size = int.from_bytes(data[16:18], "big")
    size = 65_536 if size == 1 else max(size, 512)
    return [(at // size + 1, data[at : at + size]) for at in range(0, len(data), size)]


def _logged(data: bytes) -> list[tuple[int, bytes]]:
    step = _FRAME_HEADER + int.from_bytes(data[8:12], "big")
    frames = [data[at : at + step] for at in range(_LOG_HEADER, len(data), step)]
    return [(int.from_bytes(frame[:4], "big"), frame[_FRAME_HEADER:]) for frame in frames]


def _rows(data: bytes) -> Iterator[Reading | Unread]:
    # A copy: opening the file itself could change it, and its log is searched by itself.
    with tempfile.TemporaryDirectory(prefix="search-") as folder:
        copy = Path(folder) / "copy.sqlite"
        # Bytes 18 and 19 say that there is a write-ahead log, which the copy does not have.
        copy.write_bytes(data[:18] + b"\x01\x01" + data[20:])
        try:
            with closing(sqlite3.connect(copy)) as database:
                database.text_factory = bytes
                names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
                for name in names:
                    quoted = name.decode("utf-8", "replace").replace('"', '""')
                    rows = database.execute(f'SELECT * FROM "{quoted}"')
                    values = (value for row in rows for value in row if value is not None)
                    yield Reading(how="SQLite's rows", data=b"\n".join(map(_octets, values)))
        except sqlite3.Error as error:
            yield Unread(f"SQLite's rows cannot be read ({error})")


def _octets(value: bytes | float) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _seams(pages: list[tuple[int, bytes]]) -> Iterator[bytes]:
    """Join what stands before the number of a page with the beginning of that page, whatever the number means there."""
    # Pages of trees begin with their kind; those that a text goes on in, or did, with the number of the next one.
    beginnings: dict[int, list[bytes]] = defaultdict(list)
    for number, page in pages:
        if page[:1] == b"\0" and page.strip(b"\0"):
            beginnings[number].append(page[4 : 4 + _MARGIN])
    known = np.array(sorted(beginnings), np.uint32)
    for _, page in pages:
        octets = np.frombuffer(page, np.uint8).astype(np.uint32)
        numbers = octets[:-3] << 24 | octets[1:-2] << 16 | octets[2:-1] << 8 | octets[3:]
        for at in np.nonzero(np.isin(numbers, known))[0]:
            # The number at the beginning of a page is that of the page on which its end goes on.
            end = page[max(0, at - _MARGIN) : at] if at else page[-_MARGIN:]
            yield from (end + beginning for beginning in beginnings[int(numbers[at])])
