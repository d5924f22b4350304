"""Local Sequencer: work is cut into steps where it can start again; what one step has stored, no other one repeats.

Problem: one step looks up where visitors are, joins the answers with the visits and writes. If the write fails, all of
it starts again, and each hour of a backfill looks the same addresses up once more.
How it works: the lookup is a step with a table of its own, `silver.places`, and the join, `silver.visits_enriched`,
begins at that table. The boundary is a commit: a retry of the join, Dagster's re-execution from failure and a later
run start behind it. A step asks only for what is not stored (:func:`missing`), so a lookup that is executed again
repeats nothing either.
The trap: a boundary where nothing is stored. Two steps that pass rows in memory look like two in the graph, and start
again as one. And what is stored is not asked for again: an address that changes hands keeps its country.
When not to use it: when a step is cheap, and nobody else needs its result; to store it costs more than to repeat it.
Source: Data Engineering Design Patterns, ch. 6.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def missing(wanted: DataFrame, stored: DataFrame, *, key: str) -> list[str]:
    """Return the values of a text column that no stored row has, each once and in order; null is none."""
    values = wanted.where(F.col(key).isNotNull()).select(key).distinct()
    return sorted(values.join(stored.select(key), on=key, how="left_anti").toArrow()[key].to_pylist())
