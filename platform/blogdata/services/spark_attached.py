"""This process's session on a deployment's Spark server: attached at first use, reattached when it is lost."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from blogdata.services import processes, spark_connect, spark_probe, spark_session
from blogdata.services.config import Settings
from blogdata.services.spark_conf import TABLE_FILES

_UNCHECKED_SECONDS = 30.0


@dataclass(kw_only=True)
class _Attached:
    session: Any
    url: str
    process: processes.ProcessIdentity | None
    checked: float


# One session per deployment: the steps of a run in this process share it.
_attached: dict[Settings, _Attached] = {}
_lock = threading.RLock()


def session(settings: Settings, conf: Mapping[str, Any] | None = None) -> Any:
    """Return the session; a new one if the server was lost since the last use.

    Raises:
        SparkServerUnreachable: A remote server does not answer.
        SparkServerFailed: The local server cannot be started.
    """
    with _lock:
        attached = _attached.get(settings)
        if attached is None or not _usable(attached):
            if attached is not None:
                drop(settings)
            attached = _attach(settings)
            _attached[settings] = attached
            for key, value in (conf or {}).items():
                attached.session.conf.set(key, value)
        return attached.session


@contextmanager
def guarded(settings: Settings, conf: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """Provide the session, and raise SparkServerLost for any error that means the server or session is gone.

    Args:
        conf: As for :func:`session`.

    Yields:
        The session.

    Raises:
        SparkServerLost: Server or session were lost inside the context; the next use attaches a new one.
    """
    held = session(settings, conf)
    try:
        yield held
    except Exception as error:
        if not spark_probe.is_lost(error):
            raise
        attached = _attached.get(settings)
        if attached is not None and attached.session is held:
            drop(settings)
        url = attached.url if attached is not None else settings.spark.remote
        raise spark_probe.lost(error, url or "the local Spark server") from error


def drop(settings: Settings) -> None:
    """Release the session of a deployment; the next use attaches a new one."""
    with _lock:
        attached = _attached.pop(settings, None)
        if attached is not None:
            spark_session.release(attached.session, lost=not _reachable(attached))


def _attach(settings: Settings) -> _Attached:
    if not _attached:
        atexit.unregister(_release_all)
        atexit.register(_release_all)
    server = spark_connect.running_server(settings)
    attached = spark_session.attach(server.url)
    if settings.spark.mode == "remote":
        # An external server was not started with the platform's configuration.
        for key, value in {**TABLE_FILES, **dict(settings.spark.conf)}.items():
            if key in TABLE_FILES:
                attached.conf.set(key, value)
    return _Attached(session=attached, url=server.url, process=server.process, checked=time.monotonic())


def _usable(attached: _Attached) -> bool:
    if attached.session.is_stopped:
        return False
    if attached.process is not None and not processes.is_alive(attached.process):
        return False
    if time.monotonic() - attached.checked < _UNCHECKED_SECONDS:
        return True
    try:
        attached.session.version  # noqa: B018 - asks the server, and fails if it has closed the session
    except Exception as error:
        if not spark_probe.is_lost(error):
            raise
        return False
    attached.checked = time.monotonic()
    return True


def _release_all() -> None:
    with _lock:
        for attached in _attached.values():
            spark_session.release(attached.session, lost=not _reachable(attached))
        _attached.clear()


def _reachable(attached: _Attached) -> bool:
    return attached.process is None or processes.is_alive(attached.process)
