"""Wrapper: computed values are stored beside the values as received, which stay unchanged and recognisable.

Problem: producers send values in any form, consumers need computed and typed ones, and later the original values are
needed as well.
How it works: :func:`wrap` turns a record into an envelope with two parts, raw and computed, in one of the four layouts
of the book's figure 5-4. Every layout keeps raw values as they are.
The trap: the attributes of one record now live in two places, and in the FLAT layout only the name distinguishes
raw from computed columns; a computed column with the name of a raw one is refused, as it would replace it. Rows get
larger, but columnar files read only the selected columns. Two tables can become inconsistent: SEPARATE needs a key that
is unique and never null.
When not to use it: for values that only engineers need (Metadata Decorator), or in the layer that consumers read.
Source: "Data Engineering Design Patterns", ch. 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from blogdata.errors import PlatformError

RAW = "raw"
COMPUTED = "computed"


class Layout(str, Enum):
    """Where raw and computed values are stored."""

    COMPUTED_NESTED = "computed_nested"
    """Raw columns at the top, computed ones in a struct `computed`."""
    RAW_NESTED = "raw_nested"
    """Computed columns at the top, raw ones in a struct `raw`."""
    FLAT = "flat"
    """All columns at the top."""
    SEPARATE = "separate"
    """Two tables: raw columns in one, the key and the computed columns in the other."""


class NotWrappable(PlatformError):
    """Raised when raw and computed columns could not be distinguished, or not be joined again."""


@dataclass(frozen=True, kw_only=True)
class Wrapped:
    """Wrapped rows.

    Args:
        rows: One row per input row; for SEPARATE the raw columns only.
        computed: The second table of SEPARATE; None in the other layouts.
    """

    rows: DataFrame
    computed: DataFrame | None = None


def wrap(
    frame: DataFrame,
    computed: Mapping[str, Column],
    layout: Layout = Layout.RAW_NESTED,
    *,
    key: Sequence[str] = (),
) -> Wrapped:
    """Put computed values beside the columns of a frame.

    Args:
        frame: The rows as received; all columns are raw.
        computed: Name to Column expression over the frame.
        layout: Where the raw and the computed values are stored.
        key: Raw columns that identify a row; required by SEPARATE, which repeats them in its second table.

    Raises:
        NotWrappable: `computed` is empty, a name is already taken, or SEPARATE has no key of raw columns.
    """
    raw = tuple(frame.columns)
    _require(computed, layout, raw, key)
    values = [column.alias(name) for name, column in computed.items()]
    if layout is Layout.SEPARATE:
        return Wrapped(rows=frame, computed=frame.select(*key, *values))
    if layout is Layout.COMPUTED_NESTED:
        return Wrapped(rows=frame.select(*raw, F.struct(*values).alias(COMPUTED)))
    if layout is Layout.RAW_NESTED:
        return Wrapped(rows=frame.select(*values, F.struct(*raw).alias(RAW)))
    return Wrapped(rows=frame.select(*raw, *values))


def _require(computed: Mapping[str, Column], layout: Layout, raw: Sequence[str], key: Sequence[str]) -> None:
    taken = {
        Layout.COMPUTED_NESTED: {COMPUTED} & set(raw),
        Layout.RAW_NESTED: {RAW} & set(computed),
        Layout.FLAT: set(raw) & set(computed),
        Layout.SEPARATE: set(key) & set(computed),
    }[layout]
    absent = [name for name in key if name not in raw]
    if not computed or taken:
        problem = f"{', '.join(sorted(taken))} would be both raw and computed" if taken else "nothing is computed"
        next_step = "give each computed column a name of its own" if taken else "pass at least one computed column"
    elif layout is Layout.SEPARATE and (not key or absent):
        problem = f"the key {', '.join(key) or '(none)'} does not identify raw rows"
        next_step = f"name key columns among: {', '.join(raw)}"
    else:
        return
    raise NotWrappable(what=problem, where=f"layout {layout.value}", next_step=next_step)
