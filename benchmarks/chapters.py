"""What the page says of each benchmark besides its figures: how it is measured, and what was aimed at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One benchmark in words.

    Args:
        title: Of the section.
        aim: The target, as the summary shows it while nothing is measured.
        text: How it is measured, in Markdown.
    """

    title: str
    aim: str
    text: str


_A = Chapter(
    title="Bronze to gold",
    aim="at most 1.15 at 5,000,000 visits",
    text="""
Three simulated days land; users, devices and visits go to all 16 datasets of bronze, silver and gold.

- *platform*: what `blogdata run` does, in a new deployment: one Dagster run a range, every write audited inside its
  transaction, every partition's account checked against the layer above, events and column lineage recorded.
- *straight script*: the same tables by the same rules in plain PySpark and Delta (`benchmarks/straight_script.py`),
  each written once for the whole span with `partitionBy` and `replaceWhere`, on the same Spark server. No Dagster,
  contracts, constraints, audits, accounts or events. It uses the platform's line reader, because Spark's own has no
  byte offsets and a window that counts them would slow the script down; and it trusts its input a little more: a line
  cannot fake the marker that tells one object from several.

The platform's time includes `silver.users_current`, day by day, which the script does not make. Every other
table of both lakes is compared: number of rows and sum of a 64-bit hash of all columns of every row; gold also
by `exceptAll` in both directions.
""",
)
_B = Chapter(
    title="Three chained assets",
    aim="at least 8 against multiprocess, at most 0.7 s a warm step",
    text="""
Each asset reads a Delta partition of 1,000 rows, adds a column and writes. All seconds are per step: a third of the
whole.

- *platform*: three contract datasets, run as `blogdata run` runs them, on the warm server: audited, accounted,
  published, with checks and the ledger.
- *dagster-pyspark in process*: `PySparkResource` and `materialize`; one Java for the three steps.
- *dagster-pyspark multiprocess*: `dagster job execute` with the multiprocess executor; every step starts its own
  Java.

The peers have no audits or accounts, and get the platform's jars and its Spark settings for small tables, so that
they start as fast as they can. *A command* is everything a person waits for, from the start of the process; *a run*
is from its start to its end, in a process that has run before where there is one (multiprocess has none).

Most of a warm step is one call to the server, in which a dozen Spark jobs rebuild the state of two Delta tables from
their logs, write 1,000 rows, audit the files and plan all that; the rest is Dagster in this process, mostly events in
SQLite and the ledger's look at the logs.
""",
)
_C = Chapter(
    title="An audited write",
    aim="at most 1.25",
    text="""
A table of 2,000,000 rows in ten days; one day is replaced, another one each round. The rows are made up by
arithmetic, so that next to nothing but the write is measured.

- *plain Delta write*: `df.write.format("delta").mode("overwrite").option("replaceWhere", ...)`, with statistics on
  the same columns as the other table, and no constraints.
- *published write*: `publish()`: constraints, audits of the files inside the open transaction, the account against
  the layer above, measures, inputs and lineage in the commit, and the receipt read back from the log.

The difference is a second look at the files: reading what was written back is the price of auditing what will be
published.
""",
)
_D = Chapter(
    title="One more hour",
    aim="at most 1.20 after 100 days",
    text="""
An hour of 10,000 events lands and `blogdata run` publishes it to gold, when 1, 10 or 100 days of hours are there
already. The history has ten events an hour, published by one range run a table; the new hours begin a week, so day
and week hold nothing else whatever the history. What differs is only what the platform itself has to look at: logs of
tables, the event log, folders.
""",
)
_E = Chapter(
    title="Another engine",
    aim="none",
    text="""
The job of (a) by DuckDB and delta-rs (`benchmarks/duckdb_job.py`): one process, started anew each round, no Java, no
server, the memory of Spark's heap, the same Delta tables at the end, compared like those of (a). No Dagster, audits or
accounts.

On one machine and at this size an engine without a cluster's machinery may be expected to win, so there is no target:
who has a few million rows a day, one machine and no need for accounts is served well by DuckDB. What Spark is here
for is the same code on a cluster, and a write that is audited before anyone can read it.
""",
)
_F = Chapter(
    title="A week replaced",
    aim="at most 1.20 after 100 weeks",
    text="""
A week of 50,000 rows is replaced, when its dataset has this week only and when it has a hundred. The history is
written by delta-rs before the first round.

- *metadata*: `replace_periods`, as `gold.visits_weekly` is written: a new table for the week, audited and accounted
  for, and one commit of the pointer, whose rows name the other 99 tables.
- *DELETE and INSERT*: the two statements on one Delta table, without audits or accounts, in which every week is a file
  of its own; the statistics of its columns let DELETE leave the other files alone, and it has to look at them all.

At the end both hold the same rows, 100 weeks of them. What the view costs a reader is below the table: each of its
tables has a log of its own, which is why past years are frozen into one.
""",
)
_G = Chapter(
    title="Late rows",
    aim="100 hours in at most 3 times the seconds of one",
    text="""
A thousand hours are published; then one file lands with one late event for each of 1, 10 or 100 of them, scattered so
that no two are neighbours, and `blogdata run` integrates it, up to gold. What is
timed is all of that run. Below are the seconds a touched hour, and how many hours of `silver.visits` ran: the
arrival's own, which is empty, is one more.
""",
)
_H = Chapter(
    title="A merge of few rows",
    aim="at most 5 rows copied for a changed one",
    text="""
A table of 5,000,000 rows in which every thousandth changes, wherever it lies and others in each round, by the
platform's `merge`: audited on the whole table as it would be left. What Delta's own metrics of the commits say is
below: with deletion vectors, which tables that are merged have, a changed row is marked where it is and written
anew; without them every file that holds one is copied.
""",
)
CHAPTERS: Mapping[str, Chapter] = MappingProxyType(
    {"a": _A, "b": _B, "c": _C, "d": _D, "e": _E, "f": _F, "g": _G, "h": _H}
)
"""The benchmarks by letter."""
