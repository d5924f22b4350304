"""What is in a file: its bytes, and everything that is packed into them, layer by layer."""

from __future__ import annotations

import bz2
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from blogdata.erasure import frames, parquet_content, rocksdb_content, sqlite_content
from blogdata.erasure.readings import Reading, Unread

_DEEPEST = 5
_LARGEST = 1 << 30
"""What unpacks to more bytes is named, and not read: it may be made to fill the memory."""
_STEP = 1 << 20


@dataclass(frozen=True, kw_only=True)
class _Packing:
    """A way to pack bytes.

    Args:
        magic: How packed bytes begin.
        unpack: Reads them from a position on: the unpacked bytes, and where they end; raises what `broken` lists.
    """

    name: str
    magic: bytes
    unpack: Callable[[bytes, int], tuple[bytes, int]]
    anywhere: bool = True


class _Broken(ValueError):
    """Raised when packed bytes cannot be unpacked to the end; `args[0]` is what could be."""


def _gzip(data: bytes, start: int) -> tuple[bytes, int]:
    unpacker = zlib.decompressobj(wbits=31)
    parts, size, position = [], 0, start
    try:
        while not unpacker.eof and position < len(data) and size <= _LARGEST:
            parts.append(unpacker.decompress(data[position : position + _STEP]))
            size, position = size + len(parts[-1]), position + _STEP
    except zlib.error as error:
        raise _Broken(b"".join(parts)) from error
    if not unpacker.eof:
        raise _Broken(b"".join(parts))
    return b"".join(parts), min(position, len(data)) - len(unpacker.unused_data)


def _streamed(codec: str, ends: Callable[[bytes, int], int]) -> Callable[[bytes, int], tuple[bytes, int]]:
    def unpack(data: bytes, start: int) -> tuple[bytes, int]:
        end = ends(data, start)
        parts, size = [], 0
        try:
            with pa.CompressedInputStream(pa.BufferReader(data[start:end]), codec) as stream:
                while size <= _LARGEST and (part := stream.read(_STEP)):
                    parts.append(part)
                    size += len(part)
        except OSError as error:
            raise _Broken(b"".join(parts)) from error
        return b"".join(parts), end

    return unpack


def _in_blocks(
    blocks: Callable[[bytes, int], Iterator[tuple[bytes, int]]],
) -> Callable[[bytes, int], tuple[bytes, int]]:
    def unpack(data: bytes, start: int) -> tuple[bytes, int]:
        parts, end, size = [], start, 0
        try:
            for part, after in blocks(data, start):
                parts.append(part)
                size, end = size + len(part), after
                if size > _LARGEST:
                    break
        except ValueError as error:
            raise _Broken(b"".join(parts)) from error
        return b"".join(parts), end

    return unpack


def _whole(unpack: Callable[[bytes], bytes]) -> Callable[[bytes, int], tuple[bytes, int]]:
    def all_(data: bytes, start: int) -> tuple[bytes, int]:
        try:
            return unpack(data[start:]), len(data)
        except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
            raise _Broken(b"") from error

    return all_


_PACKINGS = (
    _Packing(name="gzip", magic=b"\x1f\x8b\x08", unpack=_gzip),
    _Packing(name="zstd", magic=b"\x28\xb5\x2f\xfd", unpack=_streamed("zstd", frames.zstd_end)),
    _Packing(name="lz4", magic=b"\x04\x22\x4d\x18", unpack=_streamed("lz4", frames.lz4_end)),
    _Packing(name="lz4", magic=frames.LZ4_BLOCK, unpack=_in_blocks(frames.lz4_blocks)),
    _Packing(name="snappy", magic=frames.SNAPPY, unpack=_in_blocks(frames.snappy_blocks)),
    _Packing(name="bzip2", magic=b"BZh", unpack=_whole(bz2.decompress), anywhere=False),
    _Packing(name="xz", magic=b"\xfd7zXZ\x00", unpack=_whole(lzma.decompress), anywhere=False),
)
_MAGIC = re.compile(b"|".join(re.escape(packing.magic) for packing in _PACKINGS if packing.anywhere))
_FORMATS = (
    (parquet_content.is_one, parquet_content.read),
    (sqlite_content.is_one, sqlite_content.read),
    (rocksdb_content.is_one, rocksdb_content.read),
)


def layers(data: bytes, how: str = "", *, depth: int = 0) -> Iterator[Reading | Unread]:
    """Unpack some bytes, and what is packed into them; the bytes themselves are not returned.

    Args:
        data: Bytes of a file, or of a part of it.

    Yields:
        What they contain, and what of it cannot be read.
    """
    read = next((read for is_one, read in _FORMATS if is_one(data)), None)
    if read is not None:
        found = read(data)
    elif data.startswith(b"PK\x03\x04"):
        found = _zip(data)
    else:
        found = _packed(data)
    for each in found:
        if isinstance(each, Unread):
            yield Unread(f"{how}{each.why}")
            continue
        if depth == _DEEPEST:
            yield Unread(f"{how}{each.how} is packed more than {_DEEPEST} times")
            continue
        within = Reading(how=f"{how}{each.how}", data=each.data)
        yield within
        yield from layers(within.data, f"{within.how}, ", depth=depth + 1)


def _packed(data: bytes) -> Iterator[Reading | Unread]:
    position = 0
    while (at := _next(data, position)) is not None:
        packing = next(each for each in _PACKINGS if data.startswith(each.magic, at))
        try:
            unpacked, end = packing.unpack(data, at)
        except _Broken as error:
            (unpacked,), end = error.args, at
            # In the middle of other bytes, a beginning without anything behind it is one by chance.
            if unpacked or at == 0:
                yield Unread(f"{packing.name} is cut off or damaged")
        position = max(end, at + len(packing.magic))
        if len(unpacked) > _LARGEST:
            yield Unread(f"{packing.name} unpacks to more than {_LARGEST >> 20} MiB")
        if unpacked:
            yield Reading(how=packing.name, data=unpacked)


def _next(data: bytes, position: int) -> int | None:
    if position == 0 and any(data.startswith(each.magic) for each in _PACKINGS):
        return 0
    found = _MAGIC.search(data, position)
    return None if found is None else found.start()


def _zip(data: bytes) -> Iterator[Reading | Unread]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist():
                if entry.file_size > _LARGEST:
                    yield Unread(f"zip has an entry of more than {_LARGEST >> 20} MiB")
                else:
                    yield Reading(how="zip", data=archive.read(entry))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error, OSError, EOFError):
        yield Unread("zip is cut off, damaged or encrypted")
