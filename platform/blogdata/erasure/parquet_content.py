"""What is in a Parquet file: the values of its columns, and its pages with what no value leads to any more.

A dictionary page has every entry that was made, and the headers of pages have statistics; footers and indexes are not
compressed, so the bytes of the file show them. Rows that a deletion vector marks are read like all others.
Format: https://parquet.apache.org/docs/file-format/ and its `parquet.thrift`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from blogdata.erasure import thrift
from blogdata.erasure.readings import Reading, Unread

_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
_ROWS = 20_000
_UNPACKED_SIZE, _PACKED_SIZE, _SECOND_VERSION = 2, 3, 8
_REPETITION_LEVELS, _DEFINITION_LEVELS, _IS_COMPRESSED = 6, 5, 7
_CODECS = {"GZIP": "gzip", "ZSTD": "zstd", "SNAPPY": "snappy", "LZ4": "lz4_raw", "BROTLI": "brotli"}


def is_one(data: bytes) -> bool:
    """Return whether some bytes are a Parquet file."""
    return data.startswith((_MAGIC, _ENCRYPTED))


def read(data: bytes) -> Iterator[Reading | Unread]:
    """Read the values of each column, and all pages.

    Args:
        data: Bytes of the file.
    """
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
    except (pa.ArrowException, OSError):
        yield Unread("Parquet is cut off, damaged or encrypted")
        return
    yield from _values(file)
    yield from _pages(data, file.metadata)


def _values(file: Any) -> Iterator[Reading | Unread]:
    for name in file.schema_arrow.names:
        try:
            for batch in file.iter_batches(batch_size=_ROWS, columns=[name]):
                yield Reading(how=f"Parquet's column {name}", data=b"\n".join(_texts(batch.column(0))))
        except (pa.ArrowException, OSError, NotImplementedError):
            yield Unread(f"Parquet's column {name} cannot be read")


def _texts(values: Any) -> Iterator[bytes]:
    """Write values one after the other, those of nested types field by field."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        yield from _texts(values.dictionary)
    elif pa.types.is_struct(kind):
        for field in values.flatten():
            yield from _texts(field)
    elif pa.types.is_map(kind):
        yield from _texts(values.keys)
        yield from _texts(values.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _texts(values.flatten())
    elif not pa.types.is_null(kind):
        yield _joined(values)


def _joined(values: Any) -> bytes:
    kind = values.type
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    wanted = pc.cast(pc.drop_null(values), pa.binary() if is_binary else pa.string())
    whole = pa.ListArray.from_arrays(pa.array([0, len(wanted)], pa.int32()), wanted)
    separator = pa.scalar(b"\n" if is_binary else "\n", wanted.type)
    joined = pc.binary_join(whole, separator)[0].as_py()
    return bytes(joined) if is_binary else str(joined).encode()


def _pages(data: bytes, footer: Any) -> Iterator[Reading | Unread]:
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            chunk = footer.row_group(group).column(number)
            name = chunk.path_in_schema.partition(".")[0]
            begins = [at for at in (chunk.dictionary_page_offset, chunk.data_page_offset) if at]
            part = data[min(begins) : min(begins) + chunk.total_compressed_size] if begins else b""
            try:
                yield Reading(how=f"Parquet's pages of {name}", data=b"\n".join(_unpacked(part, chunk.compression)))
            except (ValueError, KeyError, OSError, pa.ArrowException):
                yield Unread(f"Parquet's pages of {name} cannot be read")


def _unpacked(chunk: bytes, compression: str) -> Iterator[bytes]:
    position = 0
    while position < len(chunk):
        header, position = thrift.struct(chunk, position)
        body = chunk[position : position + header[_PACKED_SIZE]]
        position += header[_PACKED_SIZE]
        levels = 0
        if _SECOND_VERSION in header:
            second = header[_SECOND_VERSION]
            levels = second.get(_REPETITION_LEVELS, 0) + second.get(_DEFINITION_LEVELS, 0)
            if not second.get(_IS_COMPRESSED, True):
                compression = "UNCOMPRESSED"
        if compression == "UNCOMPRESSED" or len(body) == levels:
            yield body
            continue
        codec = pa.Codec(_CODECS[compression])
        yield bytes(codec.decompress(body[levels:], header[_UNPACKED_SIZE] - levels, asbytes=True))
