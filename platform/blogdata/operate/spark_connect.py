"""One warm Spark for the whole deployment: a Spark Connect server that outlives the process that started it.

Starting Spark takes seconds, attaching to a running server takes tenths of a second. A state file records the
server's process (id and start time, because ids are reused), its address, and a fingerprint of the configuration
it was started with.
"""

from __future__ import annotations

import json
import logging
import secrets
import shutil
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from blogdata.errors import PlatformError, TransientError
from blogdata.errors.remedies import Diagnose, Remedy, ShowService
from blogdata.files import locked, write_atomically
from blogdata.operate import processes, spark_launch
from blogdata.operate.config import Settings
from blogdata.operate.jars import package_folder
from blogdata.operate.processes import ProcessIdentity, ServiceStatus, Started
from blogdata.operate.spark_launch import SERVICE

_log = logging.getLogger(__name__)
_SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_PROBE_SECONDS = 10.0
_PATIENCE_SECONDS = 30.0
_START_SECONDS = 240.0


@dataclass(frozen=True, kw_only=True)
class SparkServer:
    """A running Spark Connect server; a remote one has no process."""

    url: str
    process: ProcessIdentity | None

    @property
    def pid(self) -> int | None:
        return None if self.process is None else self.process.pid

    @property
    def may_answer(self) -> bool:
        """Whether its process runs, or it is another machine's."""
        return self.process is None or processes.is_alive(self.process)

    def __repr__(self) -> str:
        return f"SparkServer(url={without_token(self.url)!r}, pid={self.pid})"


def running_server(settings: Settings) -> SparkServer:
    if settings.spark.remote is not None:
        probe(settings.spark.remote)
        return SparkServer(url=settings.spark.remote, process=None)
    conf = {**spark_launch.configuration(settings), **_CONNECT_CONF}
    fingerprint = _fingerprint(settings, conf)
    state = processes.read_state(settings, SERVICE)
    if state is not None and state.fingerprint == fingerprint and _serves(state, _PROBE_SECONDS):
        return SparkServer(url=state.url, process=state.identity)
    with locked(settings.service_folder(SERVICE) / "lock"):
        state = _settle(settings, fingerprint) or _start(settings, conf, fingerprint)
    return SparkServer(url=state.url, process=state.identity)


def stop(settings: Settings) -> bool:
    with locked(settings.service_folder(SERVICE) / "lock"):
        state = processes.read_state(settings, SERVICE)
        stopped = state is not None and processes.stop(state.identity)
        processes.state_file(settings, SERVICE).unlink(missing_ok=True)
        shutil.rmtree(spark_launch.scratch(settings), ignore_errors=True)
    return stopped


def status(settings: Settings) -> ServiceStatus:
    remote = settings.spark.remote
    state = processes.read_state(settings, SERVICE) if remote is None else None
    address = state.url if state is not None else remote
    if address is None:
        return ServiceStatus(state="stopped", detail="No server was started here")

    def answer() -> str:
        probe(address, seconds=_PROBE_SECONDS)
        return "It answers"

    identity = state.identity if state is not None else None
    return processes.status(identity, without_token(address), log=log_file(settings), probe=answer)


def log_file(settings: Settings) -> Path:
    return settings.service_folder(SERVICE) / "server.log"


_CONNECT_CONF = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    # Runs from a web interface can be hours apart; a session that expired in between would fail the next one.
    "spark.connect.session.manager.defaultSessionTimeout": "7d",
}


def _settle(settings: Settings, fingerprint: str) -> Started | None:
    """Return the usable server, or stop unusable ones and return None; the caller holds the lock."""
    state = processes.read_state(settings, SERVICE)
    if state is not None:
        if not processes.is_alive(state.identity):
            reason = "had ended"
        elif state.fingerprint != fingerprint:
            reason = "had another configuration"
        elif _serves(state, _PATIENCE_SECONDS):
            return state
        else:
            reason = f"did not answer for {_PATIENCE_SECONDS:g} s"
        _log.warning("The Spark server (process %d) %s; a new one is started", state.pid, reason)
        processes.stop(state.identity)
        processes.state_file(settings, SERVICE).unlink(missing_ok=True)
    return None


def _start(settings: Settings, conf: Mapping[str, str], fingerprint: str) -> Started:
    folder = settings.service_folder(SERVICE)
    port = processes.free_port()
    token = secrets.token_urlsafe(24)
    shutil.rmtree(spark_launch.scratch(settings), ignore_errors=True)
    listens = {"spark.connect.grpc.binding.port": str(port)}
    command = _command(settings, {**conf, **listens}, folder)
    environment = {**spark_launch.environment(settings), "SPARK_CONNECT_AUTHENTICATE_TOKEN": token}
    # A lake outside the home may have readers of other users: the files there get the permissions they always had.
    identity = processes.start(
        command,
        environment=environment,
        log=log_file(settings),
        folder=folder,
        umask=0o077 if settings.lake.is_relative_to(settings.home) else -1,
    )
    state = Started(
        pid=identity.pid,
        created=identity.created,
        home=str(settings.home),
        url=f"sc://localhost:{port}/;token={token}",
        fingerprint=fingerprint,
    )
    processes.write_state(settings, SERVICE, state)
    # About a second of work, while the server is starting anyway.
    import pyspark.sql.connect.client.core  # noqa: F401

    if _serves(state, _START_SECONDS):
        return state
    ended = not processes.is_alive(identity)
    processes.stop(identity)
    processes.state_file(settings, SERVICE).unlink(missing_ok=True)
    reason = "ended while starting" if ended else f"did not serve within {_START_SECONDS:g} s"
    log = log_file(settings).read_text(encoding="utf-8", errors="replace")
    raise TransientError(
        what=f"The Spark server {reason}: {processes.last_words(log)}",
        where=str(log_file(settings)),
        next_step=Remedy("Read the log; run: ", Diagnose()),
    )


def _serves(state: Started, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    port = int(state.url.split(":")[2].split("/")[0])
    while processes.is_alive(state.identity):
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        if not processes.port_is_free(port):
            try:
                probe(state.url, seconds=min(left, _PATIENCE_SECONDS))
                return True
            except SparkServerUnreachable as error:
                _log.debug("Not yet: %s", error.what)
        time.sleep(0.1)
    return False


def _command(settings: Settings, conf: Mapping[str, str], folder: Path) -> list[str]:
    properties = folder / "server.conf"
    escaped = {key: value.replace("\\", "\\\\").replace("\n", "\\n") for key, value in sorted(conf.items())}
    lines = "".join(f"{key} {value}\n" for key, value in escaped.items())
    write_atomically(properties, lines.encode(), mode=0o600)
    submit = ["org.apache.spark.deploy.SparkSubmit", "--properties-file", str(properties)]
    # Spark loads some 150 MiB of classes and compiles more code than the default cache holds. Class collections at the
    # start, and methods that are evicted and compiled again, cost more than this memory.
    room = ["-XX:MetaspaceSize=256m", "-XX:ReservedCodeCacheSize=512m"]
    options = ["-XX:+UseParallelGC", *room]
    return spark_launch.command(settings, [*submit, "--class", _SERVER_CLASS], options=options)


def _fingerprint(settings: Settings, conf: Mapping[str, str]) -> str:
    facts = {
        "conf": dict(conf),
        "python": spark_launch.worker_python_script(),
        "spark": str(package_folder("pyspark")),
        "workers": spark_launch.worker_code(),
    }
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


class SparkServerUnreachable(PlatformError):
    transient = True


class SparkServerLost(PlatformError):
    """Raised when the Spark Connect server, or this client's session on it, is lost during the work."""

    transient = True


# Error conditions and texts of Spark Connect and gRPC that mean a lost server or session.
_LOST = (
    "INVALID_HANDLE.SESSION_CHANGED",
    "INVALID_HANDLE.SESSION_CLOSED",
    "INVALID_HANDLE.SESSION_NOT_FOUND",
    "INVALID_HANDLE.OPERATION_NOT_FOUND",
    "RETRIES_EXCEEDED",
    "StatusCode.UNAVAILABLE",
    "failed to connect to all addresses",
    "Socket closed",
    "Connection reset by peer",
    "Cannot invoke RPC on closed channel",
    "Cannot invoke RPC: Channel closed",
)


def probe(url: str, *, seconds: float = 10.0) -> None:
    """Run `SELECT 1` on the server in a separate session; raises SparkServerUnreachable."""
    import grpc
    from pyspark.sql.connect.client.core import DefaultChannelBuilder
    from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

    user = base_pb2.UserContext(user_id="blogdata-probe")
    session = str(uuid.uuid4())
    request = base_pb2.ExecutePlanRequest(session_id=session, user_context=user)
    request.plan.root.sql.query = "SELECT 1"
    try:
        with DefaultChannelBuilder(url).toChannel() as channel:
            stub = base_pb2_grpc.SparkConnectServiceStub(channel)  # type: ignore[no-untyped-call]
            rows = sum(answer.arrow_batch.row_count for answer in stub.ExecutePlan(request, timeout=seconds))
            release = base_pb2.ReleaseSessionRequest(session_id=session, user_context=user)
            stub.ReleaseSession(release, timeout=seconds)
    except grpc.RpcError as error:
        raise _unreachable(url, _describe(error)) from error
    if rows != 1:
        raise _unreachable(url, f"SELECT 1 gave {rows} rows")


def is_lost(error: BaseException) -> bool:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, (SparkServerLost, SparkServerUnreachable)):
            return True
        if type(seen).__module__.startswith(("grpc", "pyspark")):
            condition = getattr(seen, "getCondition", str)
            text = f"{condition()} {_describe(seen)}"
            if any(sign in text for sign in _LOST):
                return True
        seen = seen.__cause__ or seen.__context__
    return False


def lost(error: BaseException, url: str) -> SparkServerLost:
    """Build what to raise from an error that means a lost server or session."""
    lines = [line.strip() for line in _describe(error).splitlines()]
    # A broken gRPC stream prints as a block of fields; the reason is in the line `details =`, not in the first.
    telling = next((line for line in lines if line.startswith("details =")), lines[0])
    return SparkServerLost(
        what=f"The Spark server went away during the work: {telling.removeprefix('details = ')[:200]}",
        where=without_token(url),
        next_step="Run this again: a local server is started anew by the next attach",
    )


def without_token(url: str) -> str:
    head, *parameters = url.split(";")
    return ";".join([head, *(part for part in parameters if not part.startswith("token="))]).rstrip("/")


def _describe(error: BaseException) -> str:
    code, details = getattr(error, "code", None), getattr(error, "details", None)
    if callable(code) and callable(details):
        return f"{code()}: {details()}"
    return str(error) or type(error).__name__


def _unreachable(url: str, reason: str) -> SparkServerUnreachable:
    return SparkServerUnreachable(
        what=f"The Spark server does not answer: {reason}",
        where=without_token(url),
        next_step=Remedy("See ", ShowService(name="spark"), ", or check the address in SPARK_REMOTE"),
    )
