"""A partner: an HTTP server that takes events, with faults, and records what it took in its order.

An `Idempotency-Key` is honoured for 24 hours: a repeated request gets the answer of the first one, and nothing is taken
again.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MOST_RECORDS = 500
HONOURED_SECONDS = 24 * 3600.0
_BATCH, _SINGLE = "/v1/events:batch", "/v1/events"


@dataclass(frozen=True, kw_only=True)
class PartnerFaults:
    """How often the partner fails, as shares of the requests, 0 to 1.

    Args:
        rate_limit: Answers 429; nothing is taken.
        unavailable: Answers 503; nothing is taken.
        late_error: Takes the request, and answers 500.
        crash: Takes the request, and ends the connection without an answer.
        partial: Share of the *records* of a batch that are not taken.
        latency: Seconds that every request takes.
    """

    rate_limit: float = 0.0
    unavailable: float = 0.0
    late_error: float = 0.0
    crash: float = 0.0
    partial: float = 0.0
    latency: float = 0.0

    @classmethod
    def every(cls, share: float) -> PartnerFaults:
        """Return faults that all have the same share."""
        return cls(rate_limit=share, unavailable=share, late_error=share, crash=share, partial=share)


class Partner(ThreadingHTTPServer):
    """The server; it asks for a bearer token if it has a key."""

    daemon_threads = True

    def __init__(
        self,
        *,
        port: int,
        file: Path,
        faults: PartnerFaults,
        seed: int = 0,
        key: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.file, self.faults, self.key = file, faults, key
        self.requests = self.repeated = 0
        self._random = random.Random(seed)
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: dict[str, tuple[float, str, Mapping[str, Any]]] = {}
        file.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that are gone."""

    def chance(self, share: float) -> bool:
        """Draw whether a fault happens."""
        with self._lock:
            return self._random.random() < share

    def take(self, key: str, body: bytes, *, bulk: bool) -> tuple[int, Mapping[str, Any]]:
        """Take a request, unless it was taken under its key before; return status and answer."""
        digest = hashlib.sha256(body).hexdigest()
        records = json.loads(body)["records"] if bulk else [json.loads(body)]
        assert 1 <= len(records) <= MOST_RECORDS
        assert all(one.keys() - {"correction"} == {"key", "sequence", "payload"} for one in records)
        with self._lock:
            self.requests += 1
            known = self._answers.get(key)
            if known is not None and self._clock() - known[0] < HONOURED_SECONDS:
                self.repeated += 1
                return (200, known[2]) if known[1] == digest else (422, {"error": "another request had this key"})
            lost = {index for index in range(len(records)) if bulk and self._random.random() < self.faults.partial}
            failed = [{"index": index, "code": self._random.choice(["throttled", "internal"])} for index in lost]
            with self.file.open("a", encoding="utf-8") as file:
                taken = [record for index, record in enumerate(records) if index not in lost]
                file.write(json.dumps({"taken": taken}) + "\n")
            self._answers[key] = (self._clock(), digest, {"failed": failed} if bulk else {})
        return 200, self._answers[key][2]


class Answering(BaseHTTPRequestHandler):
    """Answers in JSON."""

    protocol_version = "HTTP/1.1"
    # Headers and body are two writes; with Nagle's algorithm the second one waits for the client's acknowledgement.
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        self.respond(self.rfile.read(int(self.headers["Content-Length"])))

    def respond(self, body: bytes) -> None:
        raise NotImplementedError

    def answer(self, status: int, content: object, headers: Mapping[str, str] | None = None) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Handler(Answering):
    server: Partner

    def respond(self, body: bytes) -> None:
        """Answer a request, or fail as configured."""
        faults, chance = self.server.faults, self.server.chance
        time.sleep(faults.latency)
        if self.server.key is not None and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            self.answer(401, {"error": "the key is missing or wrong"})
        elif self.path not in (_BATCH, _SINGLE):
            self.answer(404, {"error": "there is no such path"})
        elif chance(faults.rate_limit):
            self.answer(429, {"error": "too many requests"}, {"Retry-After": "0.05"})
        elif chance(faults.unavailable):
            self.answer(503, {"error": "unavailable"})
        else:
            answer = self.server.take(self.headers["Idempotency-Key"], body, bulk=self.path == _BATCH)
            if chance(faults.crash):
                self.close_connection = True
            else:
                self.answer(*((500, {"error": "internal"}) if chance(faults.late_error) else answer))
