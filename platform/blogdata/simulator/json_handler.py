"""What the simulated services share: requests and answers in JSON over HTTP, and a key."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any


class JsonHandler(BaseHTTPRequestHandler):
    """Reads requests and answers them; it logs nothing, since what is sent may be personal data."""

    def do_POST(self) -> None:
        """Read what was sent, and answer it."""
        self.respond(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    @abstractmethod
    def respond(self, body: bytes) -> None:
        """Answer a request, or fail as configured."""

    def may_ask(self, key: str | None) -> bool:
        """Return whether the request has the bearer token that the service wants, if it wants one."""
        return key is None or self.headers.get("Authorization") == f"Bearer {key}"

    def answer(self, status: int, content: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        """Answer; a client that is gone is one of the faults."""
        body = json.dumps(content).encode()
        always = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        try:
            self.send_response(status)
            for name, value in {**always, **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Log nothing."""
