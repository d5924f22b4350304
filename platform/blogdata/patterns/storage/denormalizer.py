"""Denormalizer: what is known of a fact stands in its own row, so that a query joins nothing.

Problem: most questions join page views with the same tables. Each query pays for the joins, and each of its authors has
to know them.
How it works: the joins are paid once, when the table is written (:func:`flatten`). One Big Table has all that is known
in the rows of the facts. It is computed from the tables of the Normalizer, and refreshed when a dimension changes: a
partition is stale if it shows a value that the dimension no longer has (`blogdata.planning.reaches.Shown`). So a
renamed device rewrites the weeks that name it, and no other. Repeated texts take little room: Parquet stores each of
them once in a file.
The trap: a trash bag. Each column that could be of use some day seems to cost nothing, until nobody knows what the
table is about. A contract that bears this pattern's name says of each column which question needs it, or is refused.
When not to use it: for facts that change often, and are repeated in many rows: each change rewrites all of them.
Source: Data Engineering Design Patterns, ch. 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from blogdata.contract.contract import Contract


def flatten(facts: DataFrame, contract: Contract, dimensions: Iterable[tuple[DataFrame, Sequence[str]]]) -> DataFrame:
    """Join dimensions to facts by their keys."""
    for rows, key in dimensions:
        facts = facts.join(F.broadcast(rows), on=[*key], how="left")
    return facts.select(*[column.name for column in contract.columns])
