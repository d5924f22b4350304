"""The process of the receiver of events: started once for a deployment, and running until it is stopped."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from errors import PlatformError
from errors.remedies import Diagnose, Remedy
from services import processes
from services.config import Settings
from services.event_receiver import HEALTH, PATH
from services.files import locked, write_atomically
from services.processes import ProcessIdentity

_START_SECONDS = 30.0
_PROBE_SECONDS = 5.0
_ERROR = "error: "
"""With this the command line begins the line of an error."""


class ReceiverFailed(PlatformError):
    """Raised when a starting receiver ended, or did not answer in time."""


@dataclass(frozen=True, kw_only=True)
class ReceiverStatus:
    """State of the receiver.

    Args:
        state: `running`, `silent` (its process runs and does not answer), `stopped`, `dead` (it ended by itself, or was
            killed), or `off` (no sender makes calls).
        url: Its address, if it was started.
        pid: Its process id, if it runs.
        detail: One sentence of explanation.
    """

    state: Literal["running", "silent", "stopped", "dead", "off"]
    url: str | None
    pid: int | None
    detail: str


@dataclass(frozen=True, kw_only=True)
class _State:
    pid: int
    created: str
    url: str
    fingerprint: str

    @property
    def identity(self) -> ProcessIdentity:
        return ProcessIdentity(pid=self.pid, created=self.created)


def up(settings: Settings, command: Sequence[str]) -> ReceiverStatus:
    """Start the receiver, unless it runs with these settings.

    Args:
        settings: Settings of the deployment.
        command: The command that calls :func:`serve` for a deployment whose environment it gets.

    Returns:
        Its state: `running`, or `off` if no sender makes calls; then one that still runs is stopped.

    Raises:
        ConfigurationError: The port is taken.
        ReceiverFailed: It could not be started.
    """
    if not settings.events.received:
        if _read(settings) is not None:
            # It still knows the senders that the settings no longer have.
            stop(settings)
        return status(settings)
    with locked(_folder(settings) / "lock", seconds=_START_SECONDS + 60):
        state = _read(settings)
        if state is not None and (state.fingerprint != _fingerprint(settings) or not _answers(state)):
            processes.stop(state.identity)
            state = None
        if state is None:
            _start(settings, command)
    return status(settings)


def stop(settings: Settings) -> bool:
    """Stop the receiver; events that wait stay.

    Returns:
        True if it was running.
    """
    with locked(_folder(settings) / "lock", seconds=_START_SECONDS + 60):
        state = _read(settings)
        stopped = state is not None and processes.stop(state.identity)
        _state_file(settings).unlink(missing_ok=True)
    return stopped


def status(settings: Settings) -> ReceiverStatus:
    """Return the state of the receiver without changing anything."""
    state = _read(settings)
    if state is None:
        if not settings.events.received:
            return ReceiverStatus(state="off", url=None, pid=None, detail="No sender with a token is configured")
        return ReceiverStatus(state="stopped", url=None, pid=None, detail="It was not started here")
    if not processes.is_alive(state.identity):
        detail = f"Process {state.pid} is no more; its log is {log_file(settings)}"
        return ReceiverStatus(state="dead", url=state.url, pid=None, detail=detail)
    if not _answers(state):
        return ReceiverStatus(state="silent", url=state.url, pid=state.pid, detail="It does not answer")
    return ReceiverStatus(state="running", url=state.url, pid=state.pid, detail="It answers")


def log_file(settings: Settings) -> Path:
    """Return the path of the receiver's log."""
    return _folder(settings) / "events.log"


def _start(settings: Settings, command: Sequence[str]) -> None:
    folder = _folder(settings)
    environment = {
        **os.environ,
        "BLOGDATA_HOME": str(settings.home),
        "BLOGDATA_LANDING": str(settings.landing),
        "BLOGDATA_LAKE": str(settings.lake),
    }
    said = folder / "start.log"
    identity = processes.start(command, environment=environment, log=said, folder=folder)
    state = _State(
        pid=identity.pid,
        created=identity.created,
        url=f"http://{_reachable(settings)}:{settings.events.port}{PATH}",
        fingerprint=_fingerprint(settings),
    )
    write_atomically(_state_file(settings), json.dumps(asdict(state)).encode(), mode=0o600)
    deadline = time.monotonic() + _START_SECONDS
    while processes.is_alive(identity) and time.monotonic() < deadline:
        if _answers(state):
            return
        time.sleep(0.1)
    processes.stop(identity)
    _state_file(settings).unlink(missing_ok=True)
    lines = said.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["it said nothing"]
    reason = next((line.removeprefix(_ERROR) for line in lines if line.startswith(_ERROR)), lines[-1])
    raise ReceiverFailed(
        what=f"The receiver of events could not be started: {reason[:300]}",
        where=str(said),
        next_step=Remedy("Read the log; run: ", Diagnose()),
    )


def _reachable(settings: Settings) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.events.host, settings.events.host)
    return f"[{host}]" if ":" in host else host


def _answers(state: _State) -> bool:
    if not processes.is_alive(state.identity):
        return False
    # Not through a proxy: the receiver is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(state.url.removesuffix(PATH) + HEALTH, timeout=_PROBE_SECONDS) as answer:
            found = json.load(answer)
    except (OSError, ValueError):
        return False
    # Another server may have the port.
    return isinstance(found, dict) and found.get("pid") == state.pid


def _fingerprint(settings: Settings) -> str:
    return sha256(repr(settings.events).encode()).hexdigest()


def _folder(settings: Settings) -> Path:
    return settings.service_folder("events")


def _state_file(settings: Settings) -> Path:
    # Not by `_folder`, which creates the folder: a deployment without senders gets none.
    return settings.home / "services" / "events" / "server.json"


def _read(settings: Settings) -> _State | None:
    try:
        return _State(**json.loads(_state_file(settings).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        # Written by another version; the port then shows whether one still runs.
        return None
