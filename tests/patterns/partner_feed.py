"""A partner: an HTTP server that takes events, with faults; an outbox for it, and the records that it should receive.

A record whose number its key has had is taken, and not kept a second time.
"""

from __future__ import annotations

import hmac
import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from blogdata.deliver.ordered_delivery import HttpTarget
from blogdata.deliver.outbox import Delivery, Outbox, Row

PARTITION = "2026-01-05T10"


@dataclass(frozen=True, kw_only=True)
class PartnerFaults:
    """Shares of the requests, 0 to 1; `partial` is the share of records not taken, `latency` seconds a request."""

    unavailable: float = 0.0
    late_error: float = 0.0
    """It takes the request, and answers 500."""
    crash: float = 0.0
    """It takes the request, and ends the connection without an answer."""
    partial: float = 0.0
    latency: float = 0.0

    @classmethod
    def every(cls, share: float) -> PartnerFaults:
        return cls(unavailable=share, late_error=share, crash=share, partial=share)


class Partner(ThreadingHTTPServer):
    """The server; it asks for a bearer token if it has a key, and keeps repeated records if it is naive."""

    daemon_threads = True

    def __init__(
        self, *, file: Path, faults: PartnerFaults, seed: int = 0, key: str | None = None, naive: bool = False
    ) -> None:
        self.file, self.faults, self.key, self.naive = file, faults, key, naive
        self.requests = self.repeated = 0
        self.random, self._lock = random.Random(seed), threading.Lock()
        self._kept: dict[tuple[str, int], Any] = {}
        file.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that are gone."""

    def take(self, body: bytes) -> Mapping[str, Any]:
        records = json.loads(body)["records"]
        assert 1 <= len(records) <= 500
        assert all(record.keys() == {"key", "sequence", "payload"} for record in records)
        with self._lock:
            self.requests += 1
            lost = {index for index in range(len(records)) if self.random.random() < self.faults.partial}
            new = []
            for record in (record for index, record in enumerate(records) if index not in lost):
                before = self._kept.setdefault((record["key"], record["sequence"]), record)
                assert before["payload"] == record["payload"], "a number is given to one record only"
                if before is record or self.naive:
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
        faults, draw = self.server.faults, self.server.random
        time.sleep(faults.latency)
        if self.server.key is not None and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            self.answer(401, {"error": "the key is missing or wrong"})
        elif self.path != "/v1/events:batch":
            self.answer(404, {"error": "there is no such path"})
        elif draw.random() < faults.unavailable:
            self.answer(draw.choice((429, 503)), {"error": "too many requests, or unavailable"})
        else:
            answer = self.server.take(body)
            if draw.random() < faults.crash:
                self.close_connection = True
            elif draw.random() < faults.late_error:
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


@contextmanager
def partner(file: Path, faults: PartnerFaults | None = None, **more: Any) -> Iterator[Partner]:
    with Partner(file=file, faults=faults or PartnerFaults(), **more) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def rows(keys: int, per_key: int) -> list[Row]:
    """Build rows of several keys with interleaved times; one key has five times as many."""
    counts = {f"user-{number:03d}": per_key * (5 if number == 0 else 1) for number in range(keys)}
    return [row(key, position) for key, count in counts.items() for position in range(count)]


def row(key: str, position: int, **payload: object) -> Row:
    return Row(identity=[key, str(position)], key=key, at=position, payload={"at": position, **payload})


def outbox(folder: Path, taken: Sequence[Row] = ()) -> Outbox:
    made = Outbox(path=folder / "outbox.db")
    if taken:
        made.take(PARTITION, "1", taken, rows_in=len(taken), private=0)
    return made


def target(server: Partner) -> HttpTarget:
    return HttpTarget(server.url, key=None, timeout=0.1, record=as_it_is)


def as_it_is(record: Delivery) -> dict[str, Any]:
    """What is sent of a record, without tokens."""
    return {"key": record.key, "sequence": record.sequence, "payload": json.loads(record.payload)}


def expected(taken: Sequence[Row]) -> dict[str, list[tuple[int, int]]]:
    """Compute the expected deliveries: numbers and times of the records by key, in order."""
    times: dict[str, list[int]] = defaultdict(list)
    for pending in sorted(taken, key=lambda pending: pending.at):
        times[pending.key].append(pending.at)
    return {key: [*enumerate(at, 1)] for key, at in times.items()}


def token(home: Path, name: str, value: str) -> str:
    """Compute what the partner of a deployment is told instead of a key, or of an id in the payload."""
    secret = (home / "secrets" / "partner-tokens").read_bytes().strip()
    key = hmac.digest(secret, f"{name} of the partner".encode(), "sha256")
    return hmac.digest(key, value.encode(), "sha256").hex()[:32]


def by_key(records: Sequence[dict[str, Any]]) -> dict[str, list[tuple[int, int]]]:
    """Group the records that a partner received by key, in order of receipt."""
    groups: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for record in records:
        groups[record["key"]].append((record["sequence"], record["payload"]["at"]))
    return dict(groups)


def received(file: Path) -> list[dict[str, Any]]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [record for line in lines for record in json.loads(line)["taken"]]
