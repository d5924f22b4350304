"""Concurrent Runner: independent runs overlap up to a limit, and a backfill never takes the slots of new data.

Problem: if one run at a time is allowed, a slow one keeps all others waiting, though they write other tables. If any
number is allowed, a backfill of a year takes every slot, and the hour that has just landed waits for its end.
How it works: the queue (`deploy/dagster.yaml`) executes at most five runs at a time, of which at most two belong to
backfills, one computes :data:`AGAIN` what was published before, and one is a :data:`BACKGROUND` run. So one slot is
always left for new data, and runs that are :data:`ARRIVING` leave the queue first. A long replay does not hold a table,
either: it claims its partitions piece by piece (`blogdata.runs.driver`). A run that materializes assets takes
a slot in the pool of each table it writes (:func:`pool_of`), and each pool has one slot. A failed run frees its slots;
it stops no other. A backfill of a table in the lake is a single run, which computes all its partitions in one commit;
one of `serving.page_stats_files` is a run per day, and these are what the limit of two holds back.
The trap: a priority alone. It decides who leaves the queue next, and does not help while long runs of a backfill hold
all slots.
When not to use it: when a partition builds on the one before it (Single Runner). Correctness does not depend on pools,
which Dagster knows only once it has looked at a queued run of them: they save the retries of commits that conflict. The
steps of the job `refresh` use none; they claim each partition, or the whole table if its periods are executed in order.
Source: Data Engineering Design Patterns, ch. 6.
"""

ARRIVING = {"dagster/priority": "10"}
"""Tags of runs for newly landed data; backfills have no priority tag, so they are dequeued later."""
LANE = "blogdata/lane"
"""Tag of a run: what the queue limits it with."""
NEW_DATA = {LANE: "landed", **ARRIVING}
"""Tags of the sensor's run for what has landed; there is one at a time."""
AGAIN = {LANE: "again", "dagster/priority": "0"}
"""Tags of runs for what was published before and is asked for again; the queue executes one of them at a time."""
BACKGROUND = {LANE: "background"}
"""Tags of runs that nothing waits for; the queue executes one of them at a time."""


def pool_of(dataset: str) -> str:
    return dataset.replace(".", "_")
