"""Normalizer: each fact stands in one row of one table, and all others refer to it by its key.

Problem: every page view says what its device is called. If a name is corrected, all rows that repeat it have to be
found and written again, and one that is missed contradicts the others.
How it works: rows of facts have only the keys of what they are about (:func:`refer`), and each entity is a table of its
own with one row a key (:func:`entity`). The keys are those that the sources have, so no number has to be given out. The
key of its contract refuses a thing that has two rows. An entity is merged (Merger): a changed name is one row, and no
row of facts is written. It ends one join from the facts (star schema): a host's row has its site and the kind of that
site. A table of sites (snowflake schema) would have each kind once, and cost every query a join more.
The trap: facts about what the reference data does not have. An inner join drops them, so each sum is too small by
another number. Here they refer to a row `unknown`, and the sums are those of the facts.
When not to use it: for readers, who pay a join for each entity with every query. Denormalizer pays the joins once, when
it writes.
Source: Data Engineering Design Patterns, ch. 8.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def refer(facts: DataFrame, *, key: Sequence[str], known: str, unknown: str) -> DataFrame:
    """Make facts refer to an entity by a key (STRING columns) that it has; `known` is never null."""
    return facts.withColumns({name: F.when(F.col(known), F.col(name)).otherwise(F.lit(unknown)) for name in key})


def entity(rows: DataFrame, *, key: Sequence[str]) -> DataFrame:
    """List the things that rows refer to, by their keys, one row a thing."""
    return rows.select(*key).distinct()
