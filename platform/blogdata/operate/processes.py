"""Long-lived processes of a service, identified by more than a process id, because the system reuses ids."""

from __future__ import annotations

import errno
import json
import logging
import random
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from blogdata.errors import PlatformError
from blogdata.files import for_owner, is_same_folder, write_atomically
from blogdata.operate.config import Settings

_log = logging.getLogger(__name__)
_BOOT = Path("/proc/sys/kernel/random/boot_id")
# How long a process may take to end by itself before it is killed.
_STOP_SECONDS = 15.0
# Below the ephemeral ports, which the system assigns to connections and to binds to port 0: from 32768 on Linux.
_CHOSEN_PORTS = range(20_000, 32_768)


class Detached(subprocess.Popen[bytes]):
    """A process that outlives the one that started it."""

    def __del__(self) -> None:
        """Suppress the ResourceWarning of a process that still runs: that is the purpose."""


# Child processes of this one, kept so that they can be reaped if they end before it.
_children: dict[int, Detached] = {}


@dataclass(frozen=True, kw_only=True)
class ProcessIdentity:
    """Identity of a process; a later process with the same id has another one."""

    pid: int
    created: str
    """Id of the system's boot, and seconds from it to the start: a time of day changes when the clock is set."""


def start(
    command: Sequence[str], *, environment: Mapping[str, str], log: Path, folder: Path, umask: int = 0o077
) -> ProcessIdentity:
    with open(log, "wb", opener=for_owner) as output:
        process = Detached(
            list(command),
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=umask,
        )
    _children[process.pid] = process
    try:
        return identify(process.pid)
    except psutil.NoSuchProcess:
        return ProcessIdentity(pid=process.pid, created="")


def identify(pid: int) -> ProcessIdentity:
    """Return the identity of a running process; raises psutil.NoSuchProcess if there is none."""
    # Both times depend on the clock; their difference does not.
    since = psutil.Process(pid).create_time() - psutil.boot_time()
    return ProcessIdentity(pid=pid, created=f"{_BOOT.read_text(encoding='ascii').strip()}+{since:.2f}")


def is_alive(identity: ProcessIdentity) -> bool:
    if identity.pid in _children:
        _children[identity.pid].poll()
    try:
        return identify(identity.pid) == identity and psutil.Process(identity.pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def stop(identity: ProcessIdentity, *, first_signal: signal.Signals = signal.SIGTERM) -> bool:
    """Stop a process: send a signal first, then kill it after 15 seconds; return whether it was running."""
    if not is_alive(identity):
        return False
    process = psutil.Process(identity.pid)
    with suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
        process.send_signal(first_signal)
        try:
            process.wait(_STOP_SECONDS)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(_STOP_SECONDS)
    return True


def free_port() -> int:
    """Choose a free loopback port, for a server that listens on it in some seconds; nobody is assigned it meanwhile."""
    # Not `random`'s global generator: with the same seed two processes would choose the same port.
    for port in random.SystemRandom().sample(_CHOSEN_PORTS, len(_CHOSEN_PORTS)):
        if port_is_free(port):
            return port
    raise OSError(errno.EADDRINUSE, f"All ports from {_CHOSEN_PORTS[0]} to {_CHOSEN_PORTS[-1]} are in use")


def port_is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


@dataclass(frozen=True, kw_only=True)
class ServiceStatus:
    """State of a service: a silent one, of ours or of others, does not answer; a dead one ended by itself."""

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


def state_file(settings: Settings, service: str) -> Path:
    """Return the path of a service's state file; without its folder, which a deployment without the service lacks."""
    return settings.home / "services" / service / "server.json"


def write_state(settings: Settings, service: str, state: Any) -> None:
    """Write the state of a service, a dataclass; only its owner can read the file."""
    settings.service_folder(service)
    write_atomically(state_file(settings, service), json.dumps(asdict(state)).encode(), mode=0o600)


def last_words(log: str) -> str:
    """Return the line of a log that tells why a process has ended: the last one with an error, or the last one."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    telling = [line for line in lines if "Exception" in line or "Error" in line]
    return (telling or lines or ["it said nothing"])[-1][:300]


def read_state(settings: Settings, service: str) -> Started | None:
    """Read the state of a service; None if it was not started for this home, or another version wrote the file."""
    file = state_file(settings, service)
    try:
        state = Started(**json.loads(file.read_text(encoding="utf-8")))
        # One of another home, of which this is a copy, is neither used nor stopped.
        return state if is_same_folder(state.home, settings.home) else None
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        _log.warning("The state file %s is damaged; it is taken as absent", file)
        return None


def status(identity: ProcessIdentity | None, url: str, *, log: Path, probe: Callable[[], str]) -> ServiceStatus:
    """Find the state of a service; without a process others run it. The probe raises a PlatformError if silent."""
    if identity is not None and not is_alive(identity):
        return ServiceStatus(state="dead", url=url, detail=f"Process {identity.pid} is no more; its log is {log}")
    pid = None if identity is None else identity.pid
    try:
        return ServiceStatus(state="running", url=url, pid=pid, detail=probe())
    except PlatformError as error:
        return ServiceStatus(state="silent", url=url, pid=pid, detail=error.what)
