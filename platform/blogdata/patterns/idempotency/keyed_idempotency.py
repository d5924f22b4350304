"""Keyed Idempotency: a key is derived from attributes that never change, so an entity has the same key in every run.

Problem: a job that derives keys from the rows it finds, e.g. for sessions, derives other keys when a rerun finds more
rows. Its earlier output then remains beside the new one, as other entities.
How it works: the key of an entity that grows is derived from its first *appended* row, whatever the event time of that
row (:func:`first_appended`, :func:`key`): later rows are appended behind it. Partial results therefore have the key of
the final one. If a later row joins two entities, the result has the key of the one that was appended first.
The trap: event time. A late event that lies before the first one becomes the first, and changes the key.
When not to use it: where entities have a key of their own. The key is stable only while the first row is kept: if the
source is compacted or expires, the remaining rows get another key.
Source: "Data Engineering Design Patterns", ch. 4.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F


def first_appended(rows: DataFrame, position: Column, *, within: Sequence[str], into: str) -> DataFrame:
    """Add to each row the position of the first appended row of its entity; a position is unique and never changes.

    All rows of an entity have the same values in the columns `within`; these may change when it grows.
    """
    return rows.withColumn(into, F.min(position).over(Window.partitionBy(*within)))


def key(*attributes: Column) -> Column:
    """Build a key of 32 hexadecimal digits from attributes that never change, and are not null."""
    text = F.concat_ws("\x1f", *[attribute.cast("string") for attribute in attributes])
    return F.substring(F.sha2(text, 256), 1, 32)
