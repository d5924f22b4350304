"""The process of the receiver of events: started once for a deployment, and running until it is stopped."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Diagnose, Remedy
from blogdata.services import daemons, processes
from blogdata.services.config import Settings
from blogdata.services.daemons import ServiceStatus, Started
from blogdata.services.event_receiver import HEALTH, PATH

_NAME = "events"
_START_SECONDS = 30.0
_PROBE_SECONDS = 5.0
_ERROR = "error: "
"""With this the command line begins the line of an error."""


class ReceiverFailed(PlatformError):
    """Raised when a starting receiver ended, or did not answer in time."""


def up(settings: Settings, command: Sequence[str]) -> ServiceStatus:
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
        if daemons.read(settings, _NAME) is not None:
            # It still knows the senders that the settings no longer have.
            stop(settings)
        return status(settings)
    with daemons.lock(settings, _NAME, start_seconds=_START_SECONDS):
        state = daemons.read(settings, _NAME)
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
    with daemons.lock(settings, _NAME, start_seconds=_START_SECONDS):
        state = daemons.read(settings, _NAME)
        stopped = state is not None and processes.stop(state.identity)
        daemons.state_file(settings, _NAME).unlink(missing_ok=True)
    return stopped


def status(settings: Settings) -> ServiceStatus:
    """Return the state of the receiver without changing anything."""
    state = daemons.read(settings, _NAME)
    if state is None and not settings.events.received:
        return ServiceStatus(state="off", detail="No sender with a token is configured")
    if state is None:
        return ServiceStatus(state="stopped", detail="It was not started here")
    return daemons.status(state.identity, state.url, log=log_file(settings), probe=partial(_probe, state))


def log_file(settings: Settings) -> Path:
    """Return the path of the receiver's log."""
    return settings.service_folder(_NAME) / "events.log"


def _start(settings: Settings, command: Sequence[str]) -> None:
    folder = settings.service_folder(_NAME)
    environment = {
        **os.environ,
        "BLOGDATA_HOME": str(settings.home),
        "BLOGDATA_LANDING": str(settings.landing),
        "BLOGDATA_LAKE": str(settings.lake),
    }
    said = folder / "start.log"
    identity = processes.start(command, environment=environment, log=said, folder=folder)
    state = Started(
        pid=identity.pid,
        created=identity.created,
        home=str(settings.home),
        url=f"http://{_reachable(settings)}:{settings.events.port}{PATH}",
        fingerprint=_fingerprint(settings),
    )
    daemons.write(settings, _NAME, state)
    deadline = time.monotonic() + _START_SECONDS
    while processes.is_alive(identity) and time.monotonic() < deadline:
        if _answers(state):
            return
        time.sleep(0.1)
    processes.stop(identity)
    daemons.state_file(settings, _NAME).unlink(missing_ok=True)
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


def _probe(state: Started) -> str:
    if not _answers(state):
        raise ReceiverFailed(what="It does not answer", where=state.url, next_step=Remedy("run: ", Diagnose()))
    return "It answers"


def _answers(state: Started) -> bool:
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
