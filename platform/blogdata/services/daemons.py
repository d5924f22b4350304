"""What the services of a deployment have in common, each a process that outlives the one that started it.

A state file records the process (id and start time, because ids are reused) and its home, and a lock lets one process
at a time start or stop it. A copy of a home has the state files of its original: :func:`is_own` decides whose a process
is.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from blogdata.durable.whole_file import write_atomically
from blogdata.errors import ConfigurationError, PlatformError
from blogdata.services import processes
from blogdata.services.config import Settings
from blogdata.services.files import is_same_folder, locked
from blogdata.services.processes import ProcessIdentity

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ServiceStatus:
    """State of a service.

    Args:
        state: `running`, `silent` (its process runs, or one of others is configured, and it does not answer),
            `stopped`, or `dead` (it ended by itself, or was killed).
    """

    state: Literal["running", "silent", "stopped", "dead"]
    url: str | None = None
    pid: int | None = None
    detail: str


@dataclass(frozen=True, kw_only=True)
class Started:
    pid: int
    created: str
    home: str
    url: str
    fingerprint: str

    @property
    def identity(self) -> ProcessIdentity:
        return ProcessIdentity(pid=self.pid, created=self.created)


def lock(settings: Settings, service: str, *, start_seconds: float) -> AbstractContextManager[None]:
    """Hold the lock of a service, waiting for it longer than a start takes."""
    return locked(settings.service_folder(service) / "lock", seconds=start_seconds + 60)


def state_file(settings: Settings, service: str) -> Path:
    """Return the path of a service's state file; without its folder, which a deployment without the service lacks."""
    return settings.home / "services" / service / "server.json"


def write(settings: Settings, service: str, state: Any) -> None:
    """Write the state of a service, a dataclass; only its owner can read the file."""
    settings.service_folder(service)
    write_atomically(state_file(settings, service), json.dumps(asdict(state)).encode(), mode=0o600)


def is_own(settings: Settings, service: str, process: ProcessIdentity, home: str) -> bool:
    """Return whether a process serves this home; one of another home is neither used nor stopped."""
    if is_same_folder(home, settings.home):
        return True
    if not Path(home).exists() and processes.is_alive(process):
        _log.warning(
            "%s of %s, which is no more, still runs: process %d; if this home was moved from there, end that process",
            *(service, home, process.pid),
        )
    return False


def last_words(log: str) -> str:
    """Return the line of a log that tells why a process has ended: the last one with an error, or the last one."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    telling = [line for line in lines if "Exception" in line or "Error" in line]
    return (telling or lines or ["it said nothing"])[-1][:300]


def read(settings: Settings, service: str) -> Started | None:
    """Read the state of a service; None if it was not started for this home, or another version wrote the file."""
    file = state_file(settings, service)
    try:
        state = Started(**json.loads(file.read_text(encoding="utf-8")))
        return state if is_own(settings, service, state.identity, state.home) else None
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        _log.warning("The state file %s is damaged; it is taken as absent", file)
        return None


def status(identity: ProcessIdentity | None, url: str, *, log: Path, probe: Callable[[], str]) -> ServiceStatus:
    """Find the state of a service; without a process others run it. The probe raises a PlatformError if silent."""
    if identity is not None and not processes.is_alive(identity):
        return ServiceStatus(state="dead", url=url, detail=f"Process {identity.pid} is no more; its log is {log}")
    pid = None if identity is None else identity.pid
    try:
        return ServiceStatus(state="running", url=url, pid=pid, detail=probe())
    except PlatformError as error:
        return ServiceStatus(state="silent", url=url, pid=pid, detail=error.what)


def require_free(port: int, setting: str) -> None:
    if not processes.port_is_free(port):
        raise ConfigurationError(
            what=f"Port {port} is taken by {processes.port_owner(port)}",
            where=f"{setting}={port}",
            next_step=f"Set {setting} to a free port (0 has one chosen), or end that process",
        )
