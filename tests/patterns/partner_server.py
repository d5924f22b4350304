"""A partner: an HTTP server that takes events, with faults, and records what it took in its order.

A record whose number its key has had is taken, and not kept a second time.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MOST_RECORDS = 500
_PATH = "/v1/events:batch"


@dataclass(frozen=True, kw_only=True)
class PartnerFaults:
    """Shares of the requests, 0 to 1; `partial` is the share of records not taken, `latency` seconds a request."""

    rate_limit: float = 0.0
    unavailable: float = 0.0
    late_error: float = 0.0
    """It takes the request, and answers 500."""
    crash: float = 0.0
    """It takes the request, and ends the connection without an answer."""
    partial: float = 0.0
    latency: float = 0.0

    @classmethod
    def every(cls, share: float) -> PartnerFaults:
        return cls(rate_limit=share, unavailable=share, late_error=share, crash=share, partial=share)


class Partner(ThreadingHTTPServer):
    """The server; it asks for a bearer token if it has a key, and keeps repeated records if it is naive."""

    daemon_threads = True

    def __init__(
        self, *, file: Path, faults: PartnerFaults, seed: int = 0, key: str | None = None, naive: bool = False
    ) -> None:
        self.file, self.faults, self.key = file, faults, key
        self.requests = self.repeated = 0
        self._random = random.Random(seed)
        self._naive = naive
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, int], Any] = {}
        file.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that are gone."""

    def chance(self, share: float) -> bool:
        with self._lock:
            return self._random.random() < share

    def take(self, body: bytes) -> Mapping[str, Any]:
        records = json.loads(body)["records"]
        assert 1 <= len(records) <= MOST_RECORDS
        assert all(record.keys() == {"key", "sequence", "payload"} for record in records)
        with self._lock:
            self.requests += 1
            lost = {index for index in range(len(records)) if self._random.random() < self.faults.partial}
            new = []
            for record in (record for index, record in enumerate(records) if index not in lost):
                before = self._kept.setdefault((record["key"], record["sequence"]), record)
                assert before["payload"] == record["payload"], "a number is given to one record only"
                if before is record or self._naive:
                    new.append(record)
                else:
                    self.repeated += 1
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"taken": new}) + "\n")
        return {"failed": [{"index": index, "code": "internal"} for index in sorted(lost)]}


class _Handler(BaseHTTPRequestHandler):
    server: Partner
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes; with Nagle's algorithm the second one waits for the client's acknowledgement.
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        faults, chance = self.server.faults, self.server.chance
        time.sleep(faults.latency)
        if self.server.key is not None and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            self.answer(401, {"error": "the key is missing or wrong"})
        elif self.path != _PATH:
            self.answer(404, {"error": "there is no such path"})
        elif chance(faults.rate_limit):
            self.answer(429, {"error": "too many requests"})
        elif chance(faults.unavailable):
            self.answer(503, {"error": "unavailable"})
        else:
            answer = self.server.take(body)
            if chance(faults.crash):
                self.close_connection = True
            elif chance(faults.late_error):
                self.answer(500, {"error": "internal"})
            else:
                self.answer(200, answer)

    def answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""
