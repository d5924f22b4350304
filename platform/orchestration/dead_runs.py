"""Ends the runs whose process died without a word: Dagster would count them as under way for good.

A run killed with -9 outside Dagster's own servers, or with the whole machine, keeps its slots in the pools, and
sensors and conditions go on waiting for its partitions. Its process is in its log; when that is no more, the run is
reported as failed.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg
import psutil

CLOCK_SECONDS = 60.0
"""How far the clock may have been set forward since a process was noted: it then seems to have begun so much later."""
UNDER_WAY = (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)


def settle(instance: dg.DagsterInstance) -> Sequence[str]:
    """Report runs of this machine as failed whose process is no more.

    Args:
        instance: The Dagster instance.

    Returns:
        Identifiers of these runs.
    """
    dead = []
    for run in instance.get_runs(dg.RunsFilter(statuses=list(UNDER_WAY))):
        entries = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
        processes = [found for entry in entries if (found := _process(entry)) is not None]
        if processes and not any(_lives(pid, noted) for pid, noted in processes):
            instance.report_run_failed(
                run, "the process of this run is no more: it was killed, or the machine went down"
            )
            dead.append(run.run_id)
    return dead


def _process(entry: dg.EventLogEntry) -> tuple[int, float] | None:
    pid = entry.get_dagster_event().engine_event_data.metadata.get("pid")
    return (int(str(pid.value)), entry.timestamp) if pid is not None else None


def _lives(pid: int, noted: float) -> bool:
    # Numbers are given out again: a process that began well after the run had noted its own is another one.
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= noted + CLOCK_SECONDS
    except psutil.NoSuchProcess:
        return False
