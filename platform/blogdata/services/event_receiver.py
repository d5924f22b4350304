"""The receiver of events: a small HTTP server of its own process, so that events arrive while Dagster is down.

It knows nothing about events: it reads one POST, within limits of size and time, and has it answered. It listens on
the loopback interface unless told otherwise, and speaks no TLS: a proxy in front of it does.

A client that has not shown a token yet cannot keep others out. Its body is not read, and when all places are taken, a
new connection gets the place of such a client: the one that has waited longest, of the address that has most of them.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import signal
import socket
import socketserver
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from blogdata.errors import ConfigurationError, foreign, shown
from blogdata.services.config import Settings

PATH = "/events"
HEALTH = "/health"
MOST_BYTES = 64 * 1024
_SECONDS = 10.0
"""Time limit of one request, from the connection to the answer."""
_MOST_AT_ONCE = 128
_MOST_HEAD_BYTES = 16 * 1024
"""Size limit of the request line and the headers."""
_LOG_BYTES = 5_000_000
_log = logging.getLogger("blogdata.events")


@dataclass(frozen=True, kw_only=True)
class Post:
    """One POST to :data:`PATH`.

    Args:
        read: Reads its body; the caller has found the token to be right. Empty if it is larger than the limit.
        size: Length of the body, in bytes.
        token: The bearer token; None if it has none.
        origin: Address of the client.
    """

    read: Callable[[], bytes]
    size: int
    token: str | None
    origin: str


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The answer to a POST.

    Args:
        status: HTTP status.
        content: Sent as JSON.
        line: What the log says about it; it contains no token.
        headers: Further headers.
    """

    status: int
    content: Mapping[str, Any]
    line: str
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[Post], Reply]


class Server(ThreadingHTTPServer):
    """The HTTP server; it answers each request in a thread, a limited number at once.

    Args:
        address: Host and port; port 0 chooses a free one.
        answer: Answers a POST.
    """

    daemon_threads = True
    # The senders try again; a queue of connections that nobody reads helps none of them.
    request_queue_size = _MOST_AT_ONCE

    def __init__(self, address: tuple[str, int], answer: Answer) -> None:
        self.answer = answer
        self._turn = threading.Lock()
        self._unproven: dict[socket.socket, str] = {}
        self._proven: set[socket.socket] = set()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind the address; the base class would also look up its name, which may take long."""
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a request in a thread of its own, if there is a place for it."""
        with self._turn:
            if len(self._unproven) + len(self._proven) >= _MOST_AT_ONCE and not self._make_room():
                placed = False
            else:
                self._unproven[request] = client_address[0]
                placed = True
        if placed:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a request, and end its connection when its time is over."""
        limit = threading.Timer(_SECONDS, _end, [request])
        limit.daemon = True
        limit.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            limit.cancel()

    def shutdown_request(self, request: Any) -> None:
        """End a connection; its place is free."""
        with self._turn:
            self._unproven.pop(request, None)
            self._proven.discard(request)
        super().shutdown_request(request)

    def prove(self, request: socket.socket) -> None:
        """Note that a client has shown a token, so that it keeps its place."""
        with self._turn:
            if self._unproven.pop(request, None) is not None:
                self._proven.add(request)

    def _make_room(self) -> bool:
        held = Counter(self._unproven.values())
        for request, address in self._unproven.items():
            if held[address] == max(held.values()):
                del self._unproven[request]
                _end(request)
                return True
        return False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log an error of a connection, such as a client that has gone."""
        error = sys.exc_info()[1]
        if isinstance(error, OSError | HTTPException):
            _log.warning("%s: the connection failed: %s", client_address[0], type(error).__name__)
        elif error is not None:
            # Without its message, which may quote the request.
            _log.error("%s: the request could not be answered: %s", client_address[0], foreign.unforeseen(error))


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return shown.line(super().format(record))


class _CutOff(Exception):
    """Raised when a body ends before the length that was stated."""


class _Reader(io.BufferedReader):
    """What a client sends; lines, which are its request and its headers, up to a limit."""

    _left = _MOST_HEAD_BYTES

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(self._left + 1 if size is None or size < 0 else min(size, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise HTTPException("the headers are too large")
        return line


class _Handler(BaseHTTPRequestHandler):
    server: Server
    rbufsize = 0
    server_version = "blogdata"
    sys_version = ""
    timeout = _SECONDS

    def setup(self) -> None:
        super().setup()
        self.rfile = _Reader(self.rfile)

    def do_GET(self) -> None:
        if self.path == HEALTH:
            self._send(Reply(status=200, content={"state": "ready", "pid": os.getpid()}, line=""))
        else:
            self._send(_refusal(405 if self.path == PATH else 404, f"send a POST to {PATH}"))

    def do_POST(self) -> None:
        if self.path != PATH:
            self._send(_refusal(404, f"send a POST to {PATH}"))
            return
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 16):
            self._send(_refusal(411, "the length of the body is not stated: Content-Length"))
            return
        size = int(length)
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" and token.strip() else None
        post = Post(read=lambda: self._body(size), size=size, token=given, origin=self.client_address[0])
        try:
            reply = self.server.answer(post)
        except _CutOff:
            reply = _refusal(400, "the body is shorter than stated")
        self._send(reply)

    def _body(self, size: int) -> bytes:
        self.server.prove(self.connection)
        if size > MOST_BYTES:
            return b""
        body = self.rfile.read(size)
        if len(body) < size:
            raise _CutOff
        return body

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is that of the base class
        """Log nothing here: the base class would log what a client sends, unescaped."""

    def _send(self, reply: Reply) -> None:
        content = json.dumps(reply.content).encode() + b"\n"
        if reply.line:
            _log.log(
                logging.INFO if reply.status < 400 else logging.WARNING,
                "%s: %d, %s",
                self.client_address[0],
                reply.status,
                # One line each, whatever the event contains.
                reply.line.encode("unicode_escape").decode("ascii"),
            )
        self.send_response(reply.status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            **reply.headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        if reply.status >= 400:
            self._drain()

    def _drain(self) -> None:
        """Read what the client still sends: if the connection ended now, it might never see the answer."""
        with contextlib.suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(1.0)
            left = 16 * MOST_BYTES
            while left > 0 and (block := self.connection.recv(MOST_BYTES)):
                left -= len(block)


def serve(settings: Settings, answer: Answer, *, log: Path) -> None:
    """Receive events until the process is asked to end.

    Args:
        settings: Settings of the deployment; the address is that of its events.
        answer: Answers a POST.
        log: File of the log; it is rotated.

    Raises:
        ConfigurationError: The address cannot be used.
    """
    address = (settings.events.host, settings.events.port)
    try:
        server = Server(address, answer)
    except OSError as error:
        raise ConfigurationError(
            what=f"port {address[1]} of {address[0]} cannot be used: {error.strerror}",
            where="[events] port, or BLOGDATA_EVENTS_PORT",
            next_step="end what uses it, or set another port",
        ) from error
    handler = RotatingFileHandler(log, maxBytes=_LOG_BYTES, backupCount=3, encoding="utf-8")
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)

    def end(*_: object) -> None:
        # `shutdown` waits for the loop that this thread runs.
        threading.Thread(target=server.shutdown).start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        server.serve_forever()
    finally:
        server.server_close()


def _refusal(status: int, problem: str) -> Reply:
    return Reply(status=status, content={"error": problem}, line=problem)


def _end(request: socket.socket) -> None:
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
