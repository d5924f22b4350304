"""The partner: an HTTP server that takes events, with faults, and records what it took in its order.

`POST /v1/events:batch` takes at most 500 records and may take them in part; `POST /v1/events` takes one. An
`Idempotency-Key` is honoured for 24 hours: a repeated request gets the answer of the first one, and nothing is taken
again. What it took, and the answers, are in one file, so that they survive the death of the server.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from blogdata.errors import ConfigurationError
from blogdata.simulator.json_handler import JsonHandler

MOST_RECORDS = 500
HONOURED_SECONDS = 24 * 3600.0
_FIELDS = {"key", "sequence", "payload"}
_BATCH, _SINGLE = "/v1/events:batch", "/v1/events"


@dataclass(frozen=True, kw_only=True)
class PartnerFaults:
    """How often the partner fails, as shares of the requests, 0 to 1.

    Args:
        rate_limit: Answers 429 with `Retry-After`; nothing is taken.
        unavailable: Answers 503; nothing is taken.
        late_error: Takes the request, and answers 500.
        timeout: Takes the request, and answers after `slow_seconds`.
        stalled: Takes the request only after `slow_seconds`.
        crash: Takes the request, and ends the connection without an answer.
        partial: Share of the *records* of a batch that are not taken, as throttled or internal.
        slow_seconds: Length of a delay.
        retry_after: Seconds in `Retry-After`.
        latency: Seconds that every request takes.
    """

    rate_limit: float = 0.0
    unavailable: float = 0.0
    late_error: float = 0.0
    timeout: float = 0.0
    stalled: float = 0.0
    crash: float = 0.0
    partial: float = 0.0
    slow_seconds: float = 1.0
    retry_after: float = 0.05
    latency: float = 0.0

    def __post_init__(self) -> None:
        for name in ("rate_limit", "unavailable", "late_error", "timeout", "stalled", "crash", "partial"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigurationError(
                    what=f"{name} is {getattr(self, name)}, and not a share",
                    where="the faults of the partner",
                    next_step="give a number from 0 to 1",
                )

    @classmethod
    def every(cls, share: float, *, slow_seconds: float = 1.0) -> PartnerFaults:
        """Return faults that all have the same share."""
        times = ("slow_seconds", "retry_after", "latency")
        return cls(**{one.name: share for one in fields(cls) if one.name not in times}, slow_seconds=slow_seconds)


class Partner(ThreadingHTTPServer):
    """The server.

    Args:
        port: Port at the loopback interface; 0 chooses a free one.
        file: Where it records what it took: one request a line.
        faults: How often it fails.
        seed: Seed of the faults.
        key: Bearer token it asks for; None for none.
        clock: Returns the current time, in seconds since 1970.
    """

    daemon_threads = True
    request_queue_size = 64

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
        self.faults = faults
        self.key = key
        self.requests = 0
        self.repeated = 0
        self._random = random.Random(seed)
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: dict[str, tuple[float, str, Mapping[str, Any]]] = {}
        file.parent.mkdir(parents=True, exist_ok=True)
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
            one = json.loads(line)
            self._answers[one["id"]] = (one["at"], one["digest"], one["answer"])
        self._file = file.open("a", encoding="utf-8")
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        """Its root address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def server_close(self) -> None:
        """Close the server and its file."""
        super().server_close()
        with self._lock:
            self._file.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that are gone: that is one of the faults."""

    def chance(self, share: float) -> bool:
        """Draw whether a fault happens."""
        with self._lock:
            return self._random.random() < share

    def take(self, key: str | None, body: bytes, *, bulk: bool) -> tuple[int, Mapping[str, Any]]:
        """Take a request, unless it was taken under its key before; return status and answer."""
        digest = hashlib.sha256(body).hexdigest()
        records = _records(body, bulk=bulk)
        with self._lock:
            self.requests += 1
            known = self._answers.get(key) if key else None
            if known is not None and self._clock() - known[0] < HONOURED_SECONDS:
                self.repeated += 1
                return (200, known[2]) if known[1] == digest else (422, {"error": "another request had this key"})
            if records is None:
                return 400, {"error": f"1 to {MOST_RECORDS} records with key, sequence and payload are needed"}
            failed = [
                {"index": index, "code": self._random.choice(["throttled", "internal"])}
                for index in range(len(records))
                if bulk and self._random.random() < self.faults.partial
            ]
            lost = {one["index"] for one in failed}
            taken = [record for index, record in enumerate(records) if index not in lost]
            answer = {"failed": failed} if bulk else {}
            at = self._clock()
            line = {"id": key or "", "at": at, "digest": digest, "answer": answer, "taken": taken}
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
            if key:
                self._answers[key] = (at, digest, answer)
        return 200, answer


class _Handler(JsonHandler):
    server: Partner
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes; with Nagle's algorithm the second one waits for the client's acknowledgement.
    disable_nagle_algorithm = True

    def respond(self, body: bytes) -> None:
        """Answer a request, or fail as configured."""
        faults, chance = self.server.faults, self.server.chance
        time.sleep(faults.latency)
        if not self.may_ask(self.server.key):
            self.answer(401, {"error": "the key is missing or wrong"})
        elif self.path not in (_BATCH, _SINGLE):
            self.answer(404, {"error": "there is no such path"})
        elif chance(faults.rate_limit):
            self.answer(429, {"error": "too many requests"}, {"Retry-After": f"{faults.retry_after:g}"})
        elif chance(faults.unavailable):
            self.answer(503, {"error": "unavailable"})
        else:
            if chance(faults.stalled):
                time.sleep(faults.slow_seconds)
            answer = self.server.take(self.headers.get("Idempotency-Key"), body, bulk=self.path == _BATCH)
            if chance(faults.crash):
                self.close_connection = True
                return
            if chance(faults.late_error):
                answer = (500, {"error": "internal"})
            if chance(faults.timeout):
                time.sleep(faults.slow_seconds)
            self.answer(*answer)


def _records(body: bytes, *, bulk: bool) -> list[dict[str, Any]] | None:
    try:
        found = json.loads(body)
        records = found["records"] if bulk else [found]
        usable = isinstance(records, list) and all(set(one) - {"correction"} == _FIELDS for one in records)
    except (ValueError, KeyError, TypeError):
        return None
    return records if usable and 1 <= len(records) <= MOST_RECORDS else None
