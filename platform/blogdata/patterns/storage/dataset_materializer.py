"""Dataset Materializer: the result of an expensive view is a table, which a refresh brings up to date.

Problem: a view joins and merges months of rows for everybody who opens it.

How it works: the contract of the table has the view (`view`), one statement over other datasets. :func:`shown` computes
it, and the result is published as a table; so the statement that a person may run and the one that makes the table are
the same. Each publication records the version of the input that it shows, and the planner asks for a refresh once
another one matters to the view. A refresh computes the whole view: what is expensive, the sketches of the hours, has a
table of its own, and of these twelve weeks have two thousand rows. Of an input of millions a refresh would read what
has changed, from the change feed.

The trap: a table is as old as its refresh, and its rows do not show it. The planner compares the recorded version with
the input, and the lag detector says how many versions behind it is. A copy also needs the protection of its source: its
sketches are personal as those it is merged from, and consumers see neither.

When not to use it: for a view that is cheap, or asked for less often than its input changes.

Source: Data Engineering Design Patterns, ch. 8.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEW = "_view"
"""Suffix of the name of a materialized dataset's view, in SQL of `blogdata sql`."""
_DATASET = re.compile(r"\b(?:bronze|silver|gold)\.[a-z0-9_]+\b")


def shown(spark: SparkSession, view: str, inputs: Mapping[str, DataFrame]) -> DataFrame:
    query = _DATASET.sub(lambda found: f"{{{_name(found[0])}}}", view)
    frames: dict[str, Any] = {_name(dataset): frame for dataset, frame in inputs.items()}
    return spark.sql(query, **frames)


def _name(dataset: str) -> str:
    return dataset.replace(".", "__")
