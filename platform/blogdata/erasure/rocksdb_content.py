"""What is in a table file of RocksDB, in which Spark keeps the state of a stream: its blocks, decompressed.

The last block is the index of all others (https://github.com/facebook/rocksdb/wiki/Rocksdb-BlockBasedTable-Format).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from blogdata.erasure.frames import varint
from blogdata.erasure.readings import Reading, Unread

_MAGIC = (0x88E241B785F4CFF7).to_bytes(8, "little")
_FOOTER = 53
_OLDEST, _NEWEST = 4, 5
"""Versions of the format that write an index as it is read here; Spark's is 5."""
_TRAILER = 5


def is_one(data: bytes) -> bool:
    """Return whether some bytes are a table file of RocksDB."""
    return data.endswith(_MAGIC) and len(data) >= _FOOTER


def read(data: bytes) -> Iterator[Reading | Unread]:
    """Read all blocks.

    Args:
        data: Bytes of the file.
    """
    try:
        yield Reading(how="RocksDB's blocks", data=b"\n".join(_blocks(data)))
    except (ValueError, KeyError, OSError, pa.ArrowException):
        yield Unread("RocksDB's blocks cannot be read")


def _blocks(data: bytes) -> Iterator[bytes]:
    version = int.from_bytes(data[-12:-8], "little")
    if not _OLDEST <= version <= _NEWEST:
        raise ValueError(f"the format's version is {version}")
    position = len(data) - _FOOTER + 1
    meta, position = _handle(data, position)
    index, _ = _handle(data, position)
    yield _block(data, *meta)
    for handle in _entries(_block(data, *index)):
        yield from _pairs(_block(data, *handle))


def _handle(data: bytes, position: int) -> tuple[tuple[int, int], int]:
    offset, position = varint(data, position)
    size, position = varint(data, position)
    return (offset, size), position


def _entries(index: bytes) -> Iterator[tuple[int, int]]:
    """Read the places of the blocks: of the first of a group as such, of others as a difference in size."""
    restarts = int.from_bytes(index[-4:], "little") & 0x7FFFFFFF
    end, position, last = len(index) - 4 - 4 * restarts, 0, (0, 0)
    while position < end:
        shared, position = varint(index, position)
        own, position = varint(index, position)
        position += own
        if shared == 0:
            last, position = _handle(index, position)
        else:
            number, position = varint(index, position)
            last = (last[0] + last[1] + _TRAILER, last[1] + ((number >> 1) ^ -(number & 1)))
        yield last


def _pairs(block: bytes) -> Iterator[bytes]:
    """Read keys and values: a key is written without the beginning that it shares with the one before it."""
    restarts = int.from_bytes(block[-4:], "little") & 0x7FFFFFFF
    end, position, key = len(block) - 4 - 4 * restarts, 0, b""
    while position < end:
        shared, position = varint(block, position)
        own, position = varint(block, position)
        size, position = varint(block, position)
        key = key[:shared] + block[position : position + own]
        position += own + size
        yield key
        yield block[position - size : position]


def _block(data: bytes, offset: int, size: int) -> bytes:
    if offset + size + 1 > len(data):
        raise ValueError("a block is cut off")
    return _UNPACK[data[offset + size]](data[offset : offset + size])


def _sized(codec: str) -> Callable[[bytes], bytes]:
    def unpack(block: bytes) -> bytes:
        size, begin = varint(block, 0)
        return bytes(pa.Codec(codec).decompress(block[begin:], size, asbytes=True))

    return unpack


def _snappy(block: bytes) -> bytes:
    return bytes(pa.Codec("snappy").decompress(block, varint(block, 0)[0], asbytes=True))


_UNPACK: Mapping[int, Callable[[bytes], bytes]] = {0: bytes, 1: _snappy, 4: _sized("lz4_raw"), 7: _sized("zstd")}
