"""Reads structs of Thrift's compact protocol: field number to value, whatever the fields mean.

Format: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from blogdata.erasure.frames import varint

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)


def struct(data: bytes, position: int) -> tuple[dict[int, Any], int]:
    """Read a struct.

    Args:
        data: Bytes with a struct in them.

    Returns:
        Its fields, and where it ends.

    Raises:
        ValueError: It is cut off, or has a field of an unknown type.
    """
    fields: dict[int, Any] = {}
    number = 0
    while header := _octet(data, position):
        position += 1
        kind, delta = header & 0x0F, header >> 4
        if delta:
            number += delta
        else:
            number, position = _integer(data, position)
        if kind in (_TRUE, _FALSE):
            fields[number] = kind == _TRUE
        else:
            fields[number], position = _value(data, position, kind)
    return fields, position + 1


def _value(data: bytes, position: int, kind: int) -> tuple[Any, int]:
    if kind not in _READERS:
        raise ValueError(f"a field has the unknown type {kind}")
    return _READERS[kind](data, position)


def _octet(data: bytes, position: int) -> int:
    if position >= len(data):
        raise ValueError("a struct is cut off")
    return data[position]


def _integer(data: bytes, position: int) -> tuple[int, int]:
    number, position = varint(data, position)
    return (number >> 1) ^ -(number & 1), position


def _binary(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = varint(data, position)
    return data[position : position + size], position + size


def _list(data: bytes, position: int) -> tuple[list[Any], int]:
    header, position = _octet(data, position), position + 1
    size, kind = header >> 4, header & 0x0F
    if size == 15:
        size, position = varint(data, position)
    values = []
    for _ in range(size):
        value, position = _value(data, position, _BYTE if kind in (_TRUE, _FALSE) else kind)
        values.append(value)
    return values, position


_READERS: Mapping[int, Callable[[bytes, int], tuple[Any, int]]] = {
    _BYTE: lambda data, position: (_octet(data, position), position + 1),
    **dict.fromkeys(_INTEGERS, _integer),
    _DOUBLE: lambda data, position: (data[position : position + 8], position + 8),
    _BINARY: _binary,
    _LIST: _list,
    _SET: _list,
    _STRUCT: struct,
}
