"""Dagster's home of a deployment: its storage and the policies of `deploy/dagster.yaml`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from services import processes
from services.config import Settings
from services.files import locked, write_atomically
from services.jars import package_folder
from services.processes import ProcessIdentity

if TYPE_CHECKING:
    from dagster import DagsterInstance

_OPENING_SECONDS = 120.0


def render(settings: Settings) -> Path:
    """Write `dagster.yaml` for a deployment; an unchanged one is left alone.

    Args:
        settings: Of the deployment.

    Returns:
        The folder to give as `DAGSTER_HOME`.
    """
    folder = settings.home / "dagster"
    folder.mkdir(parents=True, exist_ok=True)
    template = (package_folder("deploy") / "dagster.yaml").read_text(encoding="utf-8")
    # Inside a quoted YAML scalar a path is escaped as in JSON.
    content = template.replace("{home}", json.dumps(str(settings.home), ensure_ascii=False)[1:-1]).encode()
    target = folder / "dagster.yaml"
    if not target.is_file() or target.read_bytes() != content:
        write_atomically(target, content)
    return folder


def opened(settings: Settings) -> DagsterInstance:
    """Open Dagster's storage of a deployment.

    Args:
        settings: Of the deployment.

    Returns:
        The instance; it ends as a context.

    Raises:
        LockTimeout: Others have been opening it for two minutes.
    """
    # Dagster takes seconds to import; commands that only need the folder answer at once.
    from dagster import DagsterInstance

    home = render(settings)
    # Two that open the storage for the first time at once would both create its tables.
    with locked(home / "lock", seconds=_OPENING_SECONDS):
        return DagsterInstance.from_config(str(home))


@contextmanager
def noted(settings: Settings) -> Iterator[None]:
    """Keep a file for as long as this process executes a run: one that was killed leaves it behind.

    Args:
        settings: Of the deployment.
    """
    own = processes.identify(os.getpid())
    file = _noted(settings) / f"{own.pid} {own.created}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def left_behind(settings: Settings) -> list[Path]:
    """List the files of processes that were killed while they executed a run; Dagster need not be imported for it.

    Args:
        settings: Of the deployment.
    """
    folder = _noted(settings)
    return [file for file in folder.iterdir() if not processes.is_alive(_identity(file))] if folder.is_dir() else []


def _identity(file: Path) -> ProcessIdentity:
    pid, created = file.name.split(" ")
    return ProcessIdentity(pid=int(pid), created=created)


def _noted(settings: Settings) -> Path:
    return settings.home / "dagster" / "executing"
