"""Claims what a run is about to compute, so that no two runs compute the same, whichever job they belong to.

Pools hold back only runs that materialize assets. A run of the job `refresh` takes no slot in them: it would have to
hold those of all tables from its start, and so would wait for every backfill.
"""

import os
import socket
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from logging import Logger
from time import sleep as wait

from blogdata.contract.publication import WHOLE_TABLE
from blogdata.ledger.claims import Claim, Claims
from blogdata.operate import processes
from blogdata.operate.processes import ProcessIdentity
from blogdata.planning.graph import Task
from blogdata.table.lake import Lake

_LOOK_AGAIN_SECONDS = 1.0
LEASE = timedelta(hours=6)
"""How long a claim of another host counts: its process cannot be checked from here."""
RENEWAL = LEASE / 6
"""How often a long-running owner, such as a stream, renews its claim, so that it stays valid for other hosts."""


def this_run() -> str:
    """Return an owner id, unique even within one process: host, process id, process start, random suffix."""
    return f"{socket.gethostname()} {os.getpid()} {processes.identify(os.getpid()).created} {uuid.uuid4().hex[:8]}"


def alive(claim: Claim) -> bool:
    """Return whether the owner of a claim is alive; one on another host counts as alive during its lease."""
    host, pid, created, _ = claim.owner.rsplit(" ", 3)
    if host != socket.gethostname():
        return datetime.now(timezone.utc) - claim.taken_at < LEASE
    return processes.is_alive(ProcessIdentity(pid=int(pid), created=created))


def claims(lake: Lake, dataset: str) -> Claims:
    return Claims(lake, dataset, alive=alive)


@contextmanager
def taken(lake: Lake, dataset: str, keys: Collection[str]) -> Iterator[list[str]]:
    """Claim those of some partitions that are free, until the end of the block."""
    held, owner = claims(lake, dataset), this_run()
    mine = held.take(keys, owner)
    try:
        yield mine
    finally:
        held.release(mine, owner)


@contextmanager
def claimed(lake: Lake, task: Task, keys: Collection[str], log: Logger, *, waits: bool = True) -> Iterator[set[str]]:
    """Claim partitions of a task, or its whole table if its periods are executed in order (Single Runner).

    Yields none only if other runs hold all of them and this one does not wait.
    """
    held, owner, waiting = claims(lake, task.main), this_run(), False
    wanted = {WHOLE_TABLE} if task.in_order else set(keys)
    while not (mine := set(held.take(wanted, owner))) and waits:
        if not waiting:
            log.warning(f"waiting for another run, which computes {len(wanted)} partitions of {task.main}")
        waiting = True
        wait(_LOOK_AGAIN_SECONDS)
    try:
        yield set(keys) if task.in_order and mine else mine
    finally:
        held.release(mine, owner)
