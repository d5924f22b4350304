"""Whether Dagster's daemon is at work: by the heartbeats that its threads leave in Dagster's storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagster import DagsterInstance

PATH = "/healthz"
"""Path of the UI's web server that answers everyone with one word: 200 while the daemon is at work, else 503."""
PROCESS_SECONDS = 120.0
"""Age of the newest heartbeat from which the process is dead or hangs: each of its threads leaves one in 30 s."""
THREAD_SECONDS = 1800.0
"""Age of the oldest one from which a thread hangs; one evaluation of a sensor may take minutes."""


def is_beating(instance: DagsterInstance, now: float) -> bool:
    """Return whether the daemon is at work.

    Args:
        instance: Dagster's storage.
        now: The time, in seconds since 1970.
    """
    found = instance.get_daemon_heartbeats()
    required = instance.get_required_daemon_types()
    if not required or any(kind not in found for kind in required):
        return False
    ages = [now - found[kind].timestamp for kind in required]
    return min(ages) <= PROCESS_SECONDS and max(ages) <= THREAD_SECONDS
