"""Checks whether a Spark Connect server answers, and whether an error means that server or session are lost."""

from __future__ import annotations

import uuid

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, ShowService


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
    """Check whether an error means a lost server or session, so that attaching again can help."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, (SparkServerLost, SparkServerUnreachable)):
            return True
        if type(seen).__module__.startswith(("grpc", "pyspark")):
            text = f"{_condition(seen)} {_describe(seen)}"
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


def _condition(error: BaseException) -> str:
    condition = getattr(error, "getCondition", None)
    return str(condition() or "") if callable(condition) else ""


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
