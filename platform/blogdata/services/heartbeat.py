"""Whether Dagster's daemon is at work, and when the sensors that watch a deployment last ticked.

The daemon's threads leave heartbeats in Dagster's storage. The watching sensors leave a file each, whose time tells any
probe outside of Dagster that they still run: a sensor that somebody switched off stops, and the daemon beats on.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagster import DagsterInstance

PATH = "/healthz"
"""Path of the UI's web server that answers everyone with one word: 200 while the daemon is at work, else 503."""
PROCESS_SECONDS = 120.0
"""Age of the newest heartbeat from which the process is dead or hangs: each of its threads leaves one in 30 s."""
THREAD_SECONDS = 1800.0
"""Age of the oldest one from which a thread hangs; one evaluation of a sensor may take minutes."""


TICKS = "ticks"
"""Folder of the home with one empty file for each watching sensor."""


def note_tick(home: Path, sensor: str) -> None:
    (home / TICKS).mkdir(exist_ok=True)
    (home / TICKS / sensor).touch()


def ticks(home: Path) -> Mapping[str, float]:
    """Read when each watching sensor last ticked: sensor to seconds since 1970; one that never did is left out."""
    folder = home / TICKS
    return {file.name: file.stat().st_mtime for file in sorted(folder.iterdir())} if folder.is_dir() else {}


def is_beating(instance: DagsterInstance, now: float) -> bool:
    found = instance.get_daemon_heartbeats()
    required = instance.get_required_daemon_types()
    if not required or any(kind not in found for kind in required):
        return False
    ages = [now - found[kind].timestamp for kind in required]
    return min(ages) <= PROCESS_SECONDS and max(ages) <= THREAD_SECONDS
