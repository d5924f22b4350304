"""Claims what a run is about to compute, so that no two runs compute the same, whichever job they belong to.

Pools hold back only runs that materialize assets. A run of the job `refresh` takes no slot in them: it would have to
hold those of all tables from its start, and so would wait for every backfill.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from logging import Logger
from time import sleep as wait

from blogdata.evidence.claims import Claims
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.lake.lake import Lake
from blogdata.orchestration import owners
from blogdata.planning.graph import Task

_LOOK_AGAIN_SECONDS = 1.0


def claims(lake: Lake, dataset: str) -> Claims:
    return Claims(lake, dataset, alive=owners.alive)


def is_executed(lake: Lake, task: Task) -> bool:
    """Return whether a run holds the table of a task whose periods are executed in order."""
    return task.in_order and WHOLE_TABLE in claims(lake, task.main).held()


@contextmanager
def claimed(lake: Lake, task: Task, keys: Collection[str], log: Logger, *, waits: bool = True) -> Iterator[set[str]]:
    """Claim partitions of a task, or its whole table if its periods are executed in order (Single Runner).

    Yields none only if other runs hold all of them and this one does not wait.
    """
    held, owner, waiting = claims(lake, task.main), owners.this_run(), False
    wanted = {WHOLE_TABLE} if task.in_order else set(keys)
    while not (taken := set(held.take(wanted, owner))) and waits:
        if not waiting:
            log.warning(f"waiting for another run, which computes {len(wanted)} partitions of {task.main}")
        waiting = True
        wait(_LOOK_AGAIN_SECONDS)
    try:
        yield set(keys) if task.in_order and taken else taken
    finally:
        held.release(taken, owner)
