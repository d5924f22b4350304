"""Text as whole Arrow columns: times, digits, hexadecimal names and joined pieces."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Texts: TypeAlias = Any
"""An Arrow array of large strings; `Any`, because Arrow has no type stubs."""
Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def literal(text: str) -> Any:
    return pa.scalar(text, pa.large_string())


def texts(values: Iterable[str | None]) -> Texts:
    return pa.array(list(values), pa.large_string())


def encoded(values: Iterable[str], *, ascii_only: bool = False) -> Texts:
    return texts(json.dumps(value, ensure_ascii=ascii_only) for value in values)


def join(*pieces: Any) -> Texts:
    """Concatenate columns and literals row by row; a row with a null piece is null."""
    return pc.binary_join_element_wise(*pieces, literal(""))


def quoted(*pieces: Any) -> Texts:
    return join(literal('"'), *pieces, literal('"'))


def join_present(pieces: Iterable[Any], separator: str) -> Texts:
    """Concatenates the pieces that are not null, row by row, with a separator between them."""
    return pc.binary_join_element_wise(*pieces, literal(separator), null_handling="skip")


def date_time(milliseconds: Ints) -> Texts:
    """Formats milliseconds since 1970 as `YYYY-MM-DDTHH:MM:SS.mmm`, without a zone: the caller knows the clock."""
    moments = pa.array(milliseconds, pa.timestamp("ms")).cast(pa.large_string())
    return pc.utf8_replace_slice(moments, 10, 11, "T")


def quoted_time(milliseconds: Ints, suffix: Any = "Z") -> Texts:
    """Formats milliseconds since 1970 as JSON strings with a zone suffix (one text, or a column of texts)."""
    return quoted(date_time(milliseconds), literal(suffix) if isinstance(suffix, str) else suffix)


def hexadecimal(generator: np.random.Generator, rows: int) -> Texts:
    characters = generator.bytes(16 * rows).hex()
    return texts(characters[begin : begin + 32] for begin in range(0, len(characters), 32))


def offsets(column: Texts) -> Ints:
    """Returns the start of each text in the column's bytes, and finally the end of the last text."""
    if not len(column):
        return np.zeros(1, np.int64)
    return np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]


def data(column: Texts, begin: int, end: int) -> Any:
    """Returns the concatenated bytes of the texts from `begin` to before `end`, without a copy."""
    bounds = offsets(column)
    if begin == end:
        return b""
    return column.buffers()[2].slice(int(bounds[begin]), int(bounds[end] - bounds[begin]))


def digits(numbers: Ints, width: int) -> Texts:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.large_string()), width, "0")


def numbered(prefix: str, numbers: Ints, width: int) -> Texts:
    return quoted(literal(prefix), digits(numbers, width))


def pick(pool: Texts, codes: Ints) -> Texts:
    """Returns the texts of a pool at the given positions; position -1 stands for null."""
    if len(codes) and codes.min() < 0:
        return pool.take(pa.array(codes, mask=codes < 0))
    return pool.take(pa.array(codes))


@dataclass(frozen=True, kw_only=True)
class FieldChange:
    """Replaces the JSON value of a field in some rows by a text, one for all or a column; None removes the field."""

    path: str
    mask: Flags
    value: str | Texts | None


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Which fields events of one kind have; fields with values of another type, or with a number in place of a text."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    time: str
    wrong_types: tuple[tuple[str, str], ...]
    numbers: tuple[tuple[str, str], ...]
    other: tuple[str, tuple[str, ...]]


def pair(path: str, value: Texts, changes: Sequence[FieldChange]) -> Texts:
    """Render a field of some rows as `"name":value`, changed where a change says so; null where it is removed."""
    for change in changes:
        if change.path == path:
            new = literal(change.value) if isinstance(change.value, str) else change.value
            new = pa.scalar(None, pa.large_string()) if new is None else new
            value = pc.if_else(pa.array(change.mask), new, value)
    return join(literal(f'"{path.rpartition(".")[2]}":'), value)


def braces(pairs: Sequence[Texts]) -> Texts:
    return join(literal("{"), join_present(pairs, ","), literal("}"))


def constant(piece: str | None, rows: int) -> list[Texts]:
    return [] if piece is None else [texts([piece]).take(pa.array(np.zeros(rows, np.int64)))]
