"""Frames of compressed bytes: where one ends, and the blocks that Spark writes into its temporary files."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa

LZ4_BLOCK = b"LZ4Block"
"""Begin of a block of lz4-java, Spark's default for spilled and shuffled rows and for the changes of a state."""
SNAPPY = b"\x82SNAPPY\x00"
"""Begin of a stream of snappy-java."""
_HEADER = struct.Struct("<8sBiiI")
_STORED, _COMPRESSED = 0x10, 0x20
_ZSTD_RLE, _ZSTD_RESERVED = 1, 3


def zstd_end(data: bytes, start: int) -> int:
    """Find the end of a zstd frame (RFC 8878); the end of the data if it is cut off.

    Args:
        data: Bytes with a frame in them.
    """
    if start + 5 > len(data):
        return len(data)
    descriptor = data[start + 4]
    single = bool(descriptor & 0x20)
    content_size = (int(single), 2, 4, 8)[descriptor >> 6]
    position = start + 5 + (not single) + (0, 1, 2, 4)[descriptor & 3] + content_size
    while position + 3 <= len(data):
        header = int.from_bytes(data[position : position + 3], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == _ZSTD_RESERVED:
            break
        position += 3 + (1 if kind == _ZSTD_RLE else size)
        if last:
            return min(len(data), position + (4 if descriptor & 4 else 0))
    return len(data)


def lz4_end(data: bytes, start: int) -> int:
    """Find the end of an LZ4 frame (its frame format 1.6); the end of the data if it is cut off.

    Args:
        data: Bytes with a frame in them.
    """
    if start + 5 > len(data):
        return len(data)
    flags = data[start + 4]
    position = start + 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    while position + 4 <= len(data):
        size = int.from_bytes(data[position : position + 4], "little") & 0x7FFFFFFF
        position += 4
        if size == 0:
            return min(len(data), position + (4 if flags & 0x04 else 0))
        position += size + (4 if flags & 0x10 else 0)
    return len(data)


def lz4_blocks(data: bytes, start: int) -> Iterator[tuple[bytes, int]]:
    """Decompress consecutive blocks of lz4-java, several streams one after the other included.

    Args:
        data: Bytes with blocks in them.

    Yields:
        The bytes of a block, and where it ends.

    Raises:
        ValueError: A block is cut off or damaged.
    """
    codec, position = pa.Codec("lz4_raw"), start
    while data.startswith(LZ4_BLOCK, position):
        try:
            _, token, packed, unpacked, _ = _HEADER.unpack_from(data, position)
        except struct.error as error:
            raise ValueError("the header of a block is cut off") from error
        position += _HEADER.size
        block = data[position : position + packed]
        if packed < 0 or unpacked < 0 or len(block) < packed:
            raise ValueError("a block is cut off")
        position += packed
        yield (block if token & 0xF0 == _STORED or not packed else _decompressed(codec, block, unpacked)), position


def snappy_blocks(data: bytes, start: int) -> Iterator[tuple[bytes, int]]:
    """Decompress the blocks of a stream of snappy-java, several streams one after the other included.

    Args:
        data: Bytes with a stream in them.

    Yields:
        The bytes of a block, and where it ends.

    Raises:
        ValueError: A block is cut off or damaged.
    """
    codec, position = pa.Codec("snappy"), start
    while position < len(data):
        if data.startswith(SNAPPY, position):
            position += 16
            continue
        size = int.from_bytes(data[position : position + 4], "big")
        block = data[position + 4 : position + 4 + size]
        if not block or len(block) < size:
            raise ValueError("a block is cut off, or the stream ends among other bytes")
        position += 4 + size
        yield _decompressed(codec, block, varint(block, 0)[0]), position


def varint(data: bytes, position: int) -> tuple[int, int]:
    """Read an unsigned number of variable length (LEB128).

    Args:
        data: Bytes with a number in them.

    Returns:
        The number, and where it ends.

    Raises:
        ValueError: It is cut off.
    """
    number = shift = 0
    while position < len(data):
        octet = data[position]
        position += 1
        number |= (octet & 0x7F) << shift
        if octet < 0x80:
            return number, position
        shift += 7
    raise ValueError("a number is cut off")


def _decompressed(codec: pa.Codec, block: bytes, size: int) -> bytes:
    if size > 1 << 30:
        raise ValueError("a block claims to be larger than any is")
    try:
        return bytes(codec.decompress(block, size, asbytes=True))
    except (OSError, pa.ArrowException) as error:
        raise ValueError("a block is damaged") from error
