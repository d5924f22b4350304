"""Wrapper: computed values are stored beside the values as received, which stay unchanged and recognisable.

Problem: producers send values in any form, consumers need computed and typed ones, and later the original values are
needed as well.
How it works: of the four layouts of the book's figure 5-4 the lineage has two. In `bronze.visits` and `bronze.ads` the
columns that a line was read into stand beside `raw`, the line byte for byte (:mod:`blogdata.landing.lines`). A record
for a partner is an :func:`envelope`: computed values at the top, the published row as it is in one field. With a struct
of computed columns each query would name the struct, and with a table for each part each would join them (see Vertical
Partitioner).
The trap: computed values are those of the code with which the row was published, until the hour is published again. And
names: a computed value with the name of the raw one would replace it, and is refused. Rows get larger, but columnar
files read only the selected columns.
When not to use it: for values that only engineers need (Metadata Decorator), or in the layer that consumers read.
Source: "Data Engineering Design Patterns", ch. 5.
"""

from collections.abc import Mapping
from typing import Any


def envelope(record: Mapping[str, Any], computed: Mapping[str, Any], *, field: str) -> dict[str, Any]:
    assert field not in computed, f"{field} would be both raw and computed"
    return {**computed, field: record}
