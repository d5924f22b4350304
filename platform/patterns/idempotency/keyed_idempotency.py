"""Keyed Idempotency: a key is derived from what never changes, so the same thing has the same key in every run.

Problem: a job that gives things a key as it finds them, sessions for instance, gives them another one when it runs
again and finds more. What it wrote before is then there beside it, as something else.

How it works: a thing that grows is known by the first of its parts that was *appended*, whatever time that part bears:
what comes later comes behind it in that order, and cannot take its place. Partial results carry the key that the final
one will have. Two things that a later part turns out to join go by the key of the one that was there first. Files that
a run writes are named after what they are a copy of and the time at which that was taken (:func:`stamp`), and written
under the name they have if they are there.

The trap: the time of an event. A late event that lies before the first one makes itself the first, and changes the key.

When not to use it: where things have a key of their own. And the key holds only as long as the first part is kept: a
source that is compacted or expires gives what is left of it another key.

Source: Data Engineering Design Patterns, ch. 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STAMP = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d"
"""What :func:`stamp` gives, as a regular expression; it sorts as time does, and behind the hour it begins with."""


def first_appended(rows: DataFrame, position: Column, *, within: Sequence[str], into: str) -> DataFrame:
    """Give each row the position of the first appended row of the thing it belongs to.

    Args:
        rows: All rows of the things.
        position: What the order in which rows were appended is told by; no two rows have the same one, and none ever
            changes.
        within: Columns with the same values in all rows of one thing; they may change when it grows.
        into: Name of the added column.

    Returns:
        The rows with the position, from which the key is to be derived.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    return rows.withColumn(into, F.min(position).over(Window.partitionBy(*within)))


def stamp(moment: datetime) -> str:
    """Give the part of a file's name that tells when it was taken: `2026-01-31T05-07-09` (UTC)."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H-%M-%S")
