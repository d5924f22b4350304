"""The text of each benchmark's page section: its method and its target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """The description of one benchmark.

    Args:
        title: Title of the section.
        aim: The target, as the summary shows it before the first measurement.
        text: The method, in Markdown.
    """

    title: str
    aim: str
    text: str


_A = Chapter(
    title="Bronze to gold",
    aim="at most 1.2 at 1,000,000 visits, 0.9 at 5,000,000",
    text="""
Three simulated days land: visits, the ads that visitors were shown, users and devices. They are published to all
datasets of bronze, silver and gold that have rows then: not to those of complete weeks or of access logs.

- *platform*: `blogdata run` in a new deployment: one Dagster run a range, every write audited inside its
  transaction, every partition's account checked against the layer above, events and column lineage recorded.
- *straight script*: the same tables by the same rules in plain PySpark and Delta (`benchmarks/straight_script.py`),
  each written once for the whole span with `partitionBy` and `replaceWhere`, on the same Spark server. No Dagster,
  contracts, constraints, audits, accounts or events. It uses the platform's line reader, because Spark's own has no
  byte offsets and computing them by a window would slow the script down. It trusts its input a little more: it
  assumes that no line contains the marker that separates one object from several.

Every table of both lakes is compared: number of rows and sum of a 64-bit hash of all columns of every row; gold also
by `exceptAll` in both directions. Left out are the bucket of a user and the token of a visit, which need the
deployment's key; sketches of visitors are compared by their estimates, as their bytes depend on the order of rows.

The figures below are of one round each, on a machine that others used meanwhile (load 10 to 15 on two cores at
1,000,000 visits, 4 to 7 at 5,000,000): trust the ratios only roughly. Alone on the machine, the platform took 422
seconds for 5,000,000. Without places, sessions, ads, sketches and the daily report the ratios were 1.60 and 1.05.
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

The peers have no audits or accounts. They use the platform's jars and its Spark settings for small tables, so that
they start as fast as they can. *A command* is measured from the start of its process to the end; *a run* from its
own start to its end, in a process that has already made a run (except multiprocess, which starts new processes).

Most of a warm step is one call to the server, in which a dozen Spark jobs rebuild the state of two Delta tables
from their logs, write 1,000 rows and audit the files, planning included. The rest is Dagster in this process:
mostly writing events to SQLite, and reading the logs for the ledger.
""",
)
_C = Chapter(
    title="An audited write",
    aim="at most 1.25",
    text="""
A table has 2,000,000 rows in ten days; each round replaces another day. The rows are computed by arithmetic, so
that almost only the write is measured.

- *plain Delta write*: `df.write.format("delta").mode("overwrite").option("replaceWhere", ...)`, with statistics on
  the same columns as the other table, and no constraints.
- *published write*: `publish()`: constraints, audits of the files inside the open transaction, the account against
  the layer above, measures, inputs and lineage in the commit, and the receipt read back from the log.

The difference is a second read of the files: to audit the rows that will be published, the written files must be
read back.
""",
)
_D = Chapter(
    title="One more hour",
    aim="at most 1.20 after 100 days",
    text="""
An hour of 10,000 events lands and `blogdata run` publishes it to gold, after 1, 10 or 100 days of earlier hours.
The history has ten events an hour, published by one range run a table. The new hours begin a week, so their day and
week have the same contents for every history. The only difference is the metadata that the platform reads: logs of
tables, the event log, folders.
""",
)
_E = Chapter(
    title="Another engine",
    aim="at most 3 at 10,000,000 visits",
    text="""
The job of (a) by DuckDB and delta-rs (`benchmarks/duckdb_job.py`): one process, started anew each round, without
Java or a server, with as much memory as Spark's heap. It writes the same Delta tables, which are compared as in
(a). No Dagster, audits or accounts. DuckDB has no sketches: DataSketches computes them in Python, row by row.

On one machine and at this size an engine without a cluster's overhead should win. For a few million rows a day, on one
machine, without need for accounts, DuckDB is a good choice. Spark is used here because the same code runs on a cluster,
and because a write can be audited before anyone can read it.

Where its memory ends: with 2 GiB all tables of 1, 5 and 10 million visits are computed, in 32, 162 and 353 seconds of
processor time; it spills, and the process itself takes up to 4.8 GiB, because delta-rs holds what it writes. It takes
care: with windows over whole rows instead of aggregates by hour, the sessions of 1 million visits did not fit.

The ratio below is older than places, sessions, ads, sketches and the daily report. With them DuckDB took 143 seconds
for 1,000,000 visits, just after the round of (a) in which the platform took 980: 6.9 times. The platform was not
measured at 10,000,000.
""",
)
_F = Chapter(
    title="A week replaced",
    aim="at most 1.20 after 100 weeks",
    text="""
A week of 50,000 rows is replaced in a dataset of one week, and in a dataset of a hundred weeks. The history is
written by delta-rs before the first round.

- *metadata*: `replace_periods`, which writes `gold.visits_weekly`: a new table for the week, audited and accounted
  for, and one commit of the pointer, whose rows name the other 99 tables.
- *DELETE and INSERT*: the two statements on one Delta table, without audits or accounts. Every week is a file of
  its own. DELETE reads the column statistics of all files, and because of them leaves the other files alone.

At the end both hold the same rows of 100 weeks. The cost for a reader of the view is below the table: each member
table has a log of its own, which is why past years are frozen into one table.
""",
)
_G = Chapter(
    title="Late rows",
    aim="100 hours in at most 3 times the seconds of one",
    text="""
A thousand hours are published. Then one file lands with one late event for each of 1, 10 or 100 of these hours, no
two of them neighbours, and `blogdata run` integrates it, up to gold. The whole run is timed. Below are the seconds
per touched hour, and how many hours of `silver.visits` ran: one more than touched, because the hour of arrival
itself, which is empty, runs too.
""",
)
_H = Chapter(
    title="A merge of few rows",
    aim="at most 5 rows copied for a changed one",
    text="""
The platform's `merge` changes every thousandth row of a table of 5,000,000, scattered over the files, and other
rows in each round. The audit reads the whole table as it would become. Delta's own metrics of the commits are
below. With deletion vectors, which the platform's merged tables have, a changed row is marked as removed in its
file and written anew; without them every file with a changed row is copied.
""",
)
_I = Chapter(
    title="Events to a partner",
    aim="bins send at least 20 times as many events a second as single calls",
    text="""
1,000 events of 250 visitors, four of each, wait in an outbox and are sent over HTTP to the simulated partner, which
answers each request after 10 ms. Every request is committed to the outbox before it is sent, and its answer after it.
In the end it is checked that the partner has each event once, those of a visitor in order.

- *bins*: the Bin Pack Orderer; each bin has one event of each visitor.
- *individual*, *bulk*, *concurrent*: the FIFO Orderer. Bulk requests end before the first visitor that repeats; in this
  order of the events that is after 250, the best case. Concurrent ones are single events, five at a time.
""",
)
_J = Chapter(
    title="A month's visitors",
    aim="at least 100 times as fast, error at most 2 standard errors",
    text="""
A month of page views, by arithmetic, in a table partitioned by the hour, and the sketches of its hours as
`gold.audience_hourly` keeps them (lgConfigK 12).

- *distinct count of the page views*: `count(DISTINCT user_id)` of the table, on the warm Spark server, which reads one
  column.
- *sketches merged*: 720 sketches are read with delta-rs and merged with DataSketches, as `blogdata audience` does. They
  are as many, and as large, whatever the number of page views is.
""",
)
_K = Chapter(
    title="A hot key",
    aim="none",
    text="""
Half of 4,000,000 rows have one key; the others have 400. Both ways give the same rows. The tasks are those of the
stage with the longest task of all that read a shuffle, from Spark's event log; eight tasks, not merged adaptively.

- *plain*: `distributed_aggregator.aggregate`.
- *salted*: hand-written (`benchmarks/hot_key.py`): first by the key, 16 salts of the visit's id and the counted values,
  then by the key.

The platform does not salt: no task is left alone, because only partial results are moved.
""",
)
_L = Chapter(
    title="Sessions of hours",
    aim="at most 1.15 at 5,000,000 page views",
    text="""
Three simulated days of page views, published as `silver.visits`; their sessions are computed and written. Every round
writes all hours again.

- *platform*: `blogdata run --select silver.sessions` over the whole span, as one range: a Dagster run, the sessions
  and `silver.sessions_pending` audited and in one commit, the account of every hour against `silver.visits`, and the
  digest of what each hour leaves open.
- *pattern, plain write*: the rows of `silver.sessions`, by `sessionize`, in a plain Delta write. They include the
  state of every session at the end of each hour at which it is open.
- *window query*: `lag` by visitor, a running sum of the silences above 30 minutes, and a `groupBy`, in a plain Delta
  write. It has each session once, can not continue from the hour before, and reads all hours again for a new one.

The rows of the first two are the same, and those that are completed, or open in the end, are those of the third; ids
included.
""",
)
_M = Chapter(
    title="Profiles",
    aim="none",
    text="""
Where the processor's time goes, of Spark's Java and of the command together: the ten largest groups of each run, in
percent. Seconds would depend on the machine, and on what else runs there; the shares hardly do.

- *cold first run*: `blogdata run` of a simulated day and a half in a new deployment. The server starts in it.
- *warm hour*: `blogdata run --due` after another hour has landed, the second after a first run, with the late and
  repeated rows of the simulator's defaults, or with none.
- *own log, cold*: `blogdata run` of an access log of two days, in a new deployment.

async-profiler samples Java every 5 ms of a thread's processor time, py-spy the command fifty times a second; each
part is weighed by the processor time that the system counted. A sample belongs to the innermost frame that a group
claims (`benchmarks/profile_groups.py`), so a query that Delta asks of Spark about its log is *planning*, and a class
that is loaded for it is *loading classes*. py-spy has to be on the PATH.

More than a third of a cold run is the work of C2, Java's second compiler. A warm hour is planning, starting tasks, and
Python's imports, which each command pays for.

Without C2 (`-XX:TieredStopAtLevel=1`) Java needed 95 seconds of processor time instead of 148 for a first run of 20,000
visits, and 25 instead of 29 for the hour after it. But judging and writing the lines of 1,000,000 visits, in plain
PySpark on a fresh server, took 47 seconds with C2, and more than 85 without: what few rows save, many pay for. So the
compilers are left as they are: how much will land is not known when the server starts.
""",
)
_N = Chapter(
    title="Layouts of final weeks",
    aim="none",
    text="""
Four simulated weeks with faults and late rows, as `gold.visits_weekly` has them: one row a page view, in a table by
week. Every layout has the same rows in about as many files of 1 MB. Three queries read each of them: the page views of
one visitor (`user_bucket = … AND user_id = …`), of one page, and of six hours. Files and bytes are those that the
metrics of the executed plan name; a scan that two tasks of the Bucket share is one that each of them makes.

- *order of time, no statistics*: as the rows come; the statistics of no column are in the log.
- *order of time, statistics*: with the contract's columns `event_time`, `page` and `user_bucket` (Metadata Enhancer).
- *order of user_bucket, then page*: sorted like a phone book.
- *Z-order*: written in the order of time, then `sorter.sort` as for a frozen year (Sorter): every row is written
  twice, and read twice more to compare the rows before the commit.

*The join*: page views of the visitors of the two newer weeks, and how many they had in the two before: two aggregations
by visitor and a join, with Spark's shuffle and with `bucket.read` (Bucket). The last exchange, of one row a task, is in
all of them. At the end Spark, delta-rs and DuckDB count the rows of the Z-ordered table by week, bucket and page, with
visitors, visits and the first and last time of each group: they must be equal.

The times are of one round on a busy machine: trust the files and bytes. Of about twenty files a week, a Z-order of two
columns skips nine in ten for the page, and three in ten for the visitor, whose rows are of all pages; files of 4 MiB,
four a week, skipped none for the visitor. The files are small, so all rows take half as many bytes again. Both
aggregations leave few rows to shuffle, so the shuffle is faster than the buckets, which read each file for every task
whose buckets it has.
""",
)
_O = Chapter(
    title="Models of page views",
    aim="none: what a join costs a reader",
    text="""
A simulated week of 500,000 page views is published with faults and late rows, down to the models:
`gold.visits_snowflake_*` ([Normalizer](../patterns/normalizer.md)), `gold.visits_star_hosts` and `gold.visits_obt`
([Denormalizer](../patterns/denormalizer.md)). Two questions are asked in Spark SQL of each model, after two rounds
that are not timed; the answers are compared first. The dimensions are small, so Spark sends them to the facts
(broadcast) by itself.

- *normalized*: joins hosts and sites, and devices for the second question.
- *star*: joins hosts, and devices for the second question.
- *One Big Table*: joins nothing.
""",
)
_P = Chapter(
    title="A thousand small commits",
    aim="none",
    text="""
The lines of a simulated day, faults and late rows included, appended in the order of their arrival by 1,000 commits, as
a stream does that commits every five seconds; the table is partitioned by the hour of arrival.

- *as streamed*: the table as it is then.
- *compacted*: a copy after the [Compactor](../patterns/compactor.md), which has compared the rows of the new files with
  those of the old ones before its commit. The old files stay until a vacuum, and are not counted.

The rows of both are the same. A read is a count and a sum over the lines, and by delta-rs the lines themselves. *An
hour* is a partition of about 42 small files.
""",
)
_R = Chapter(
    title="Visitors who come back",
    aim="the table at least 5 times as fast as its view",
    text="""
Sketches of the hours of thirteen weeks, as `gold.audience_hourly` keeps them, of page views by arithmetic, and
`gold.returning_visitors`, which is made of twelve of these weeks. In the end the table equals its view.

- *view*, *table*: all rows of `gold.returning_visitors_view`, and of the table.
- *refresh after one late hour*: an hour in the middle of the weeks was published again; its week is computed from its
  hours, the others from the sketches that the table has.
- *refresh of everything*: as after an upgrade of the code, or without a change feed. Both are audited and published.
""",
)
_S = Chapter(
    title="Shared visits",
    aim="none: what is found, and what it costs",
    text="""
A simulated week with faults and late rows, as `gold.visits_shared` reads it, without a geolocation service, so every
country is unknown. An attacker ([`linkage`](../../benchmarks/linkage.py)) knows of 2,000 visitors who may be shared
the page, the browser and the time of one page view each, to the minute or to the part of the day, and looks for them
in the page views, and in the anonymous rows ([Anonymizer](../patterns/anonymizer.md)); of several rows that fit, the
most exact ones are taken. Page views have a pseudonym of the visit and no user: this is the risk of whoever has them.
`k` and `l` are those that pyCANON measures. The cube by device, browser and host is there for scale.
""",
)
_T = Chapter(
    title="The rights of a role",
    aim="none: what they cost",
    text="""
The same query as each role, in turn. On the lake, four simulated weeks of page views with faults and late rows, as
`gold.visits_weekly` has them: the distinct visits of each page, of which the analyst sees those of who may be shared,
and the distinct users, whom the engineer sees as keyed hashes; the owner sees the rows as they are stored. A partner
does not see them. In PostgreSQL, rows like those of `gold.page_stats`, made by arithmetic, by real logins: columns are
granted, and the partner's policy leaves out groups of few visitors (one in five). Each query opens a connection.
The machine was busy with other work: ratios around one, and below it, say that no cost was found in that noise.
""",
)
_U = Chapter(
    title="Persons forgotten",
    aim="none",
    text="""
`blogdata forget` for 1, 100 and 1,000 users, who are spread evenly over the ids, of ten simulated days with 1,000,000
visits; each is measured once.

- *find*: all that they are known by; it reads every landed line, whoever is sought.
- *overwrite*: reads every landed line once more, and writes the files anew that have lines of theirs.

What the other steps cost depends on how much is computed again. They are measured at a tenth of the visits, in three
days, for 1, then 100, then 1,000 users of one deployment: *computed again* is all that was published from a changed
file, *cleared elsewhere* removes older versions and searches all files twice. The number of persons costs nothing that
can be seen beside what else the machine did then: every line is read, and all hours below a changed file are computed.
""",
)
_V = Chapter(
    title="A wide column",
    aim="at most 0.6 of the bytes",
    text="""
Three simulated days land, with late rows and faults; all hours of the visits are computed from `bronze.visits` and
written again in every round, audited and in one commit. The three layouts hold the same rows, which is checked.

- *one table*: the visits with the line they came from, as `silver.visits` was.
- *line in bronze*: without it, as `silver.visits` is; `silver.visits_whole` joins it from `bronze.visits`.
- *two tables*: without it, and a second table with the key and the line, in the same commit
  (`transactional_writer.overwrite_together`).

The lineage reads no line of the visits in any of them: a column that is not selected is not read, however wide it is.
What it reads takes fewer bytes where the rows without their lines lie in fewer files. The price is the join: the lines
of one hour take longer to find.
""",
)
CHAPTERS: Mapping[str, Chapter] = MappingProxyType(
    {
        "a": _A,
        "b": _B,
        "c": _C,
        "d": _D,
        "e": _E,
        "f": _F,
        "g": _G,
        "h": _H,
        "i": _I,
        "j": _J,
        "k": _K,
        "l": _L,
        "m": _M,
        "n": _N,
        "o": _O,
        "p": _P,
        "r": _R,
        "s": _S,
        "t": _T,
        "u": _U,
        "v": _V,
    }
)
"""The benchmarks by letter."""
