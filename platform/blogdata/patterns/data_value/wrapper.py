"""Wrapper: computed values are stored beside the values as received, which stay unchanged and recognisable.

Problem: producers send values in any form, consumers need computed and typed ones, and later the original values are
needed as well.
How it works: of the four layouts of the book's figure 5-4 the lineage has two. In a table :func:`beside` adds computed
columns to the received ones, such as `raw`, the line byte for byte. A record for a partner is an :func:`envelope`:
computed values at the top, the published row as it is in one field of its own. The two others have no use here: with
computed columns in a struct each query would name the struct, and with a table of its own for each part each would join
them (where parts have lifetimes of their own, see Vertical Partitioner).
The trap: beside each other, only the name distinguishes raw from computed columns; a computed value with the name of a
raw one is refused, as it would replace it. Rows get larger, but columnar files read only the selected columns.
When not to use it: for values that only engineers need (Metadata Decorator), or in the layer that consumers read.
Source: "Data Engineering Design Patterns", ch. 5.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from blogdata.errors import PlatformError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class NotWrappable(PlatformError):
    """Raised when raw and computed values could not be distinguished."""


def beside(frame: DataFrame, computed: Mapping[str, Column]) -> DataFrame:
    """Put computed columns behind the raw columns of a frame."""
    _require(computed, taken=frame.columns)
    return frame.select(*frame.columns, *(column.alias(name) for name, column in computed.items()))


def envelope(record: Mapping[str, Any], computed: Mapping[str, Any], *, field: str) -> dict[str, Any]:
    """Put a record into an envelope of computed values."""
    _require(computed, taken=[field])
    return {**computed, field: record}


def _require(computed: Collection[str], *, taken: Collection[str]) -> None:
    both = sorted(set(computed) & set(taken))
    if both or not computed:
        raise NotWrappable(
            what=f"{', '.join(both)} would be both raw and computed" if both else "nothing is computed",
            where="the computed values",
            next_step="give each computed value a name of its own" if both else "pass at least one computed value",
        )
