"""Long-lived processes of a service, known by more than a number the system gives out again."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

_BOOT = Path("/proc/sys/kernel/random/boot_id")
# How long a process may take to end by itself before it is killed.
_STOP_SECONDS = 15.0
# Below the ports that systems give by themselves to connections and to whoever asks for any: Linux from 32768.
_CHOSEN_PORTS = range(20_000, 32_768)


class _Detached(subprocess.Popen[bytes]):
    """A process that is meant to outlive the one that started it."""

    def __del__(self) -> None:
        """Say nothing: that it still runs at the end is the purpose."""


# Processes this one started: kept so that they can be reaped when they end before it.
_children: dict[int, _Detached] = {}


@dataclass(frozen=True, kw_only=True)
class ProcessIdentity:
    """A process that cannot be mistaken for a later one with the same number.

    Args:
        pid: Its number.
        created: In which boot of the system, and how many seconds after it. The time of day would be another one
            whenever the clock is set, and a process that lives would count as dead.
    """

    pid: int
    created: str


def start(command: Sequence[str], *, environment: Mapping[str, str], log: Path, folder: Path) -> ProcessIdentity:
    """Start a process that outlives this one.

    Args:
        command: The executable and its arguments.
        environment: All of its environment.
        log: Where its output goes; the file is begun anew.
        folder: Its working folder.

    Returns:
        Its identity.
    """
    with log.open("wb") as output:
        process = _Detached(
            list(command),
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _children[process.pid] = process
    try:
        return identify(process.pid)
    except psutil.NoSuchProcess:
        return ProcessIdentity(pid=process.pid, created="")


def identify(pid: int) -> ProcessIdentity:
    """Give the identity of a process that runs.

    Args:
        pid: Its number.

    Returns:
        Its identity.

    Raises:
        psutil.NoSuchProcess: None of that number runs.
    """
    # The clock is in both, and so in neither.
    since = psutil.Process(pid).create_time() - psutil.boot_time()
    return ProcessIdentity(pid=pid, created=f"{_BOOT.read_text(encoding='ascii').strip()}+{since:.2f}")


def is_alive(identity: ProcessIdentity) -> bool:
    """Tell whether this very process still runs.

    Args:
        identity: The process.

    Returns:
        False also when its number belongs to another process now.
    """
    if identity.pid in _children:
        _children[identity.pid].poll()
    try:
        return identify(identity.pid) == identity and psutil.Process(identity.pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def stop(identity: ProcessIdentity, *, asked: signal.Signals = signal.SIGTERM) -> bool:
    """End a process: ask first, then kill.

    Args:
        identity: The process; nothing happens to another one with its number.
        asked: The signal by which it is asked.

    Returns:
        True when it was running.
    """
    if not is_alive(identity):
        return False
    process = psutil.Process(identity.pid)
    try:
        process.send_signal(asked)
        _wait(process, _STOP_SECONDS)
        if is_alive(identity):
            process.kill()
            _wait(process, _STOP_SECONDS)
    except psutil.NoSuchProcess:
        return True
    return True


def with_argument(argument: str) -> list[ProcessIdentity]:
    """Find running processes of this user that were started with an argument.

    Args:
        argument: The whole argument.

    Returns:
        Their identities.
    """
    found = []
    for process in psutil.process_iter(["cmdline", "uids"]):
        uids = process.info["uids"]
        if uids is not None and uids.real == os.getuid() and argument in (process.info["cmdline"] or ()):
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(identify(process.pid))
    return [identity for identity in found if is_alive(identity)]


def free_port() -> int:
    """Choose a port on the loopback interface that nobody uses, for a server that will listen on it in some seconds.

    Returns:
        A port below those that systems hand out by themselves: meanwhile no connection is given it, and no other
        listener of the very server it was chosen for.

    Raises:
        OSError: All of them are in use.
    """
    # Not from the generator that a test or a caller may have seeded: two processes would choose the same one.
    for port in random.SystemRandom().sample(_CHOSEN_PORTS, len(_CHOSEN_PORTS)):
        if port_is_free(port):
            return port
    raise OSError(errno.EADDRINUSE, f"All ports from {_CHOSEN_PORTS[0]} to {_CHOSEN_PORTS[-1]} are in use")


def port_is_free(port: int) -> bool:
    """Tell whether a server could listen on a loopback port.

    Args:
        port: The port.

    Returns:
        False when something listens there, or the system does not let this user have it.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def port_owner(port: int) -> str:
    """Say who listens on a port, as far as this user may know.

    Args:
        port: The port.

    Returns:
        For instance `process 123 (nginx)`, or `another process`.
    """
    try:
        for connection in psutil.net_connections(kind="tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.pid
            if listens and connection.laddr and connection.laddr.port == port:
                return f"process {connection.pid} ({psutil.Process(connection.pid).name()})"
    except psutil.Error:
        return "another process"
    return "another process"


def _wait(process: psutil.Process, seconds: float) -> None:
    child = _children.get(process.pid)
    try:
        if child is not None:
            child.wait(timeout=seconds)
        else:
            process.wait(timeout=seconds)
    except (psutil.TimeoutExpired, subprocess.TimeoutExpired):
        return
