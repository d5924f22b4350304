"""Marks runs as failed whose process was killed; Dagster would show them as in progress forever.

Such a run keeps its pool slots, and sensors wait for its partitions. A run of the command line has host and process id
in a tag from its creation, because its process may be killed before the run starts. A run that Dagster's daemon has
launched has the process id in its log; its host is that of the code server which launched it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence

import dagster as dg
import psutil

PROCESS = ".dagster/blogdata_process"
"""Tag of a run that its creating process executes itself: host and process id."""
CLOCK_SECONDS = 60.0
"""Tolerated forward step of the clock since a process was logged: its start time then seems that much later."""
UNDER_WAY = (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)
"""States that only the run's own process ends; Dagster's daemon monitors the states in between."""


def own() -> dict[str, str]:
    """Return the tag of a run that this process creates and executes itself."""
    return {PROCESS: f"{socket.gethostname()} {os.getpid()}"}


def settle(instance: dg.DagsterInstance, *, launched: bool) -> Sequence[str]:
    """Report runs as failed whose process was on this host, and is gone; return their ids.

    Those that the daemon has `launched` can only be asked for on the host of its code servers.
    """
    dead = []
    for record in instance.get_run_records(dg.RunsFilter(statuses=list(UNDER_WAY))):
        processes = [*_processes(instance, record, launched)]
        if not processes or any(_lives(pid, noted_at) for pid, noted_at in processes):
            continue
        # Read the run again: its process may have finished it just before exiting.
        now = instance.get_run_by_id(record.dagster_run.run_id)
        if now is not None and now.status in UNDER_WAY:
            instance.report_run_failed(now, "the process of this run was killed, or the machine went down")
            dead.append(now.run_id)
    return dead


def _processes(instance: dg.DagsterInstance, record: dg.RunRecord, launched: bool) -> Iterator[tuple[int, float]]:
    """Yield the ids of a run's processes on this host, each with the time at which it was noted."""
    run = record.dagster_run
    # A re-execution is launched by the daemon, and inherits the tags of its parent run.
    if PROCESS in run.tags and run.parent_run_id is None:
        host, _, pid = run.tags[PROCESS].rpartition(" ")
        if host == socket.gethostname():
            yield int(pid), record.create_timestamp.timestamp()
    elif launched:
        for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
            logged = entry.get_dagster_event().engine_event_data.metadata.get("pid")
            if logged is not None:
                yield int(str(logged.value)), entry.timestamp


def _lives(pid: int, noted_at: float) -> bool:
    # Process ids are reused: one that started well after the run noted its own is another process.
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= noted_at + CLOCK_SECONDS
    except psutil.NoSuchProcess:
        return False
