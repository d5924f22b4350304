"""A geolocation service over HTTP, with known places, faults by rate, and a count of every address it was asked for."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from http.server import ThreadingHTTPServer
from typing import Any

from blogdata.errors import ConfigurationError
from blogdata.simulator.json_handler import JsonHandler

PATH = "/v1/locations"
AT_MOST = 100
_PLACES = (
    ("DE", "Berlin", "Berlin"),
    ("DE", "Bavaria", "Munich"),
    ("FR", "Île-de-France", "Paris"),
    ("GB", "England", "London"),
    ("US", "California", "San Francisco"),
    ("US", "New York", "New York"),
    ("BR", "São Paulo", "São Paulo"),
    ("IN", "Karnataka", "Bengaluru"),
    ("JP", "Tokyo", "Tokyo"),
    ("PL", "Masovia", "Warsaw"),
)
_UNKNOWN_OF_TEN = 1
Result = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class LocationFaults:
    """Share of requests that meet each fault, between 0 and 1; together at most 1.

    Raises:
        ConfigurationError: A rate is outside 0..1, or they add up to more than 1.
    """

    throttled: float = 0.0
    """Refused with 429 and `Retry-After`, before any address is taken."""
    failed: float = 0.0
    """Answered with 503, before any address is taken."""
    timed_out: float = 0.0
    """Taken and paid for, and answered too late."""
    crashed: float = 0.0
    """Taken and paid for, and the connection is closed without an answer."""
    partial: float = 0.0
    """Taken and paid for; only the first half of the addresses is in the answer."""

    @classmethod
    def every(cls, share: float) -> LocationFaults:
        """Return faults that all have the same share."""
        return cls(**{one.name: share for one in fields(cls)})

    def __post_init__(self) -> None:
        rates = [getattr(self, one.name) for one in fields(self)]
        if any(not 0 <= rate <= 1 for rate in rates) or sum(rates) > 1 + 1e-9:
            raise ConfigurationError(
                what="the rates of faults are shares between 0 and 1, together at most 1",
                where="faults of the geolocation service",
                next_step="lower some of them: a request meets at most one fault",
            )


@dataclass(kw_only=True)
class LocationServer:
    """The service's state; :func:`serving` runs it.

    Args:
        faults: How often a request meets which fault.
        seed: Seed of the faults; places depend on the address only.
        key: The bearer token it wants; None: any.
        rate: Most requests a second; more are refused with 429.
        slow: How long an answer that comes too late takes, in seconds.
        valid_until: End of every answer's validity, ISO 8601 with a zone.
        senseless: Addresses that are paid for and answered with a number in place of the country.
    """

    faults: LocationFaults = field(default_factory=LocationFaults)
    seed: int = 1
    key: str | None = None
    rate: float = 1000.0
    slow: float = 1.0
    valid_until: str = "2099-01-01T00:00:00+00:00"
    senseless: frozenset[str] = frozenset()
    down: bool = False
    """Every request is answered with 503."""
    url: str = field(default="", init=False)
    paid: Counter[str] = field(default_factory=Counter, init=False)
    """Address to how often it was taken."""
    met: Counter[str] = field(default_factory=Counter, init=False)
    """Fault to how many requests met it."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _starts: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def truth(self, address: str) -> Result:
        """Return what the service knows of an address."""
        if not ipaddress.ip_address(address).is_global:
            return {"ip": address, "error": "private"}
        digest = hashlib.sha256(address.encode()).digest()
        if digest[0] % 10 < _UNKNOWN_OF_TEN:
            return {"ip": address, "error": "unknown"}
        country, region, city = _PLACES[digest[1] % len(_PLACES)]
        return {"ip": address, "country": country, "region": region, "city": city, "valid_until": self.valid_until}

    def fault(self) -> str | None:
        """Draw the fault that the next request meets."""
        with self._lock:
            now = time.monotonic()
            self._starts = [start for start in self._starts if start > now - 1]
            if self.down:
                return self._counted("failed")
            if len(self._starts) >= self.rate:
                return self._counted("throttled")
            self._starts.append(now)
            drawn = self._random.random()
            for one in fields(self.faults):
                drawn -= getattr(self.faults, one.name)
                if drawn < 0:
                    return self._counted(one.name)
        return None

    def take(self, addresses: list[str]) -> list[Result]:
        """Count the addresses as paid, and return the answers."""
        with self._lock:
            self.paid.update(addresses)
        return [
            {**self.truth(address), "country": 49} if address in self.senseless else self.truth(address)
            for address in addresses
        ]

    def _counted(self, fault: str) -> str:
        self.met[fault] += 1
        return fault


@contextmanager
def serving(server: LocationServer, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[LocationServer]:
    """Serve over HTTP until the block ends; `url` of the server has its address.

    Args:
        server: The service.
        host: Address it listens at.
        port: Its port; 0 chooses a free one.
    """

    class Handler(_Handler):
        service = server

    with ThreadingHTTPServer((host, port), Handler) as http:
        http.daemon_threads = True
        server.url = f"http://{host}:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


class _Handler(JsonHandler):
    service: LocationServer

    def respond(self, body: bytes) -> None:
        """Answer a request for locations, or fail as configured."""
        service = self.service
        if not self.may_ask(service.key):
            return self.answer(401, {"error": "key"})
        addresses = _addresses(body)
        if self.path != PATH or addresses is None:
            return self.answer(400, {"error": f"POST {PATH} with at most {AT_MOST} ips"})
        fault = service.fault()
        if fault == "throttled":
            return self.answer(429, {"error": fault}, {"Retry-After": "0" if service.rate >= AT_MOST else "1"})
        if fault == "failed":
            return self.answer(503, {"error": fault})
        results = service.take(addresses)
        if fault == "crashed":
            self.close_connection = True
            return None
        if fault == "timed_out":
            time.sleep(service.slow)
        return self.answer(200, {"results": results[: len(results) // 2] if fault == "partial" else results})


def _addresses(content: bytes) -> list[str] | None:
    try:
        addresses = json.loads(content)["ips"]
        for address in addresses:
            ipaddress.ip_address(address)
    except (ValueError, KeyError, TypeError):
        return None
    return addresses if 0 < len(addresses) <= AT_MOST and all(isinstance(one, str) for one in addresses) else None
