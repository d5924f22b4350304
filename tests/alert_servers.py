"""A real HTTP server on this machine that receives alerts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Posted:
    """The requests that a web server received, and its next answers."""

    address: str
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """Answers still to be given, each once; afterwards it is 204."""

    @property
    def channel(self) -> str:
        """Its address for Apprise."""
        return self.address.replace("http://", "json://")


@contextmanager
def web_server() -> Iterator[Posted]:
    posted = Posted(address="")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.headers.append(dict(self.headers))
            posted.paths.append(self.path)
            status, headers = posted.answers.pop(0) if posted.answers else (204, {})
            if status < 300:
                posted.bodies.append(json.loads(body))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    posted.address = f"http://127.0.0.1:{server.server_address[1]}/hook"
    try:
        yield posted
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
