"""Anonymizer: rows for people outside, in which each person looks like several others, so that nobody is identified.

Problem: somebody outside wants to count readers. Names are easily left out; but who knows that a reader opened a
certain page on Tuesday in a rare browser finds her row, and everything else it says.
How it works: identifiers, and persons who asked not to be shared, are left out (removal). What others may know of a
person is told less exactly (generalization): values that fewer than `k` persons share are given up, one column after
the other (:func:`generalize`). A person is one row among those who look alike; rows of fewer than `k` persons, or of
fewer than `l` sensitive values, are withheld, and counted (:func:`group`). The rows of a group get new numbers, in an
order that follows from a secret and the group, so that no number leads to another group, or to a person (synthetic
replacement). Counts of two rows of a group are shifted between them by a bounded number, also from the secret
(perturbation): the sum stays, and a recomputation gives the same rows (:func:`share`). Two audits (:func:`audits`) that
no person can lift refuse anything else. They count: a group has `k` rows if its numbers begin with 1 to `k`, and `l`
values if its first `l` rows differ.
The trap: a number for each visitor, even a new one. It ties the rows of a person together, and two visits that somebody
knows of single out a third. And free text: the request of the page `/jane-doe` writes a name into the data, so a page
or a host, too, is named only if `k` persons share it.
When not to use it: for a few readers: most rows are withheld. To follow a person over time: that is a pseudonym, and no
anonymity. For a period that is shared again while it still changes: the difference of two versions is a small group.
And against who sends page views themselves: four forged visitors beside a reader are a group of five, with one row
that the forger did not send.
Source: Data Engineering Design Patterns, ch. 7; Sweeney, k-anonymity, 2002; Machanavajjhala et al., l-diversity, 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blogdata.contract.schema import Audit, Failed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ANY = "any"
"""Value of a column that was given up."""


@dataclass(frozen=True, kw_only=True)
class Anonymity:
    """What shared rows promise."""

    k: int
    l: int  # noqa: E741 - its name in the literature
    alike: tuple[str, ...]
    """Columns by which somebody may know a person, none of them null; the period is one of them or follows."""
    sensitive: str
    number: str
    count: str
    most: int
    noise: int


def audits(promised: Anonymity) -> tuple[Audit, ...]:
    group = f"struct({', '.join(promised.alike)})"
    valued = f"struct({', '.join(promised.alike)}, {promised.sensitive})"
    return (
        Audit(
            name="k_anonymous",
            expression=f"count_if({promised.number} <= {promised.k}) = {promised.k} * count(distinct {group})",
            description=f"At least {promised.k} persons look alike: each group has the numbers 1 to {promised.k}, once",
            failed=Failed.FORBIDS,
        ),
        Audit(
            name="l_diverse",
            expression=f"count(distinct case when {promised.number} <= {promised.l} then {valued} end)"
            f" = {promised.l} * count(distinct {group})",
            description=f"The first {promised.l} of those who look alike differ in `{promised.sensitive}`",
            failed=Failed.FORBIDS,
        ),
    )


def generalize(rows: DataFrame, within: Sequence[str], *, person: str, k: int, give_up: Sequence[str]) -> DataFrame:
    """Give up values that too few persons share, in this order; a row that then has enough others keeps the rest."""
    from pyspark.sql import functions as F

    for column in give_up:
        kept = F.when(F.col("_distinct") >= k, F.col(column)).otherwise(F.lit(ANY))
        rows = _with_distinct(rows, person, within).withColumn(column, kept).drop("_distinct")
    return rows


def group(rows: DataFrame, promised: Anonymity, *, person: str) -> DataFrame:
    """Make one row of a person among those who look alike, and say which of them may be shared.

    Returns:
        One row for each group and person, with the sensitive value that it has most often, and `shared` BOOLEAN.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    counted = rows.groupBy(*promised.alike, person, promised.sensitive).agg(F.sum(promised.count).alias("_counted"))
    most = F.max_by(promised.sensitive, F.struct("_counted", promised.sensitive)).alias(promised.sensitive)
    persons = counted.groupBy(*promised.alike, person).agg(most, F.sum("_counted").alias(promised.count))
    enough = F.count("*").over(Window.partitionBy(*promised.alike)) >= promised.k
    differing = _with_distinct(persons, promised.sensitive, promised.alike)
    return differing.withColumn("shared", enough & (F.col("_distinct") >= promised.l)).drop("_distinct")


def share(persons: DataFrame, promised: Anonymity, *, draw: Column) -> DataFrame:
    """Number the persons of each group anew, and shift their counts, each of them at most `most`; the sum stays."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    together, equal = Window.partitionBy(*promised.alike), Window.partitionBy(*promised.alike, promised.sensitive)
    drawn = persons.withColumn("_draw", draw)
    # The first rows of a group have different values, as far as there are any.
    turns = drawn.withColumn("_turn", F.row_number().over(equal.orderBy("_draw")))
    numbered = turns.withColumn(promised.number, F.row_number().over(together.orderBy("_turn", "_draw")))
    cut = numbered.withColumn(promised.count, F.least(F.col(promised.count), F.lit(promised.most)))
    shift = F.conv(F.substring("_draw", 17, 8), 16, 10).cast("bigint") % (promised.noise + 1)
    pairs = cut.withColumn("_shift", F.least(shift, F.col(promised.count) - 1))
    # The first of each pair gives to the second; the last of an odd number keeps what it has.
    in_order = together.orderBy(promised.number)
    gives = (F.col(promised.number) % 2 == 1) & F.lead(promised.number).over(in_order).isNotNull()
    taken = F.when(F.col(promised.number) % 2 == 0, F.lag("_shift").over(in_order)).otherwise(F.lit(0))
    shifted = F.col(promised.count) - F.when(gives, F.col("_shift")).otherwise(F.lit(0)) + taken
    return pairs.withColumn(promised.count, shifted).select(
        *promised.alike, promised.number, promised.sensitive, promised.count
    )


def _with_distinct(rows: DataFrame, column: str, within: Sequence[str]) -> DataFrame:
    """Add how many values a column has within each group, INT `_distinct`; Spark's windows count no distinct values."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    ranked = rows.withColumn("_rank", F.dense_rank().over(Window.partitionBy(*within).orderBy(column)))
    return ranked.withColumn("_distinct", F.max("_rank").over(Window.partitionBy(*within))).drop("_rank")
