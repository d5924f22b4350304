"""Access logs that grow line by line, one second apart."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=timezone.utc)


class Killed(BaseException):
    """Simulates the death of the process."""


START = datetime(2026, 3, 1, 10, 59, 58, tzinfo=timezone.utc)


def line(seconds: int, page: str = "/") -> bytes:
    stamp = (START + timedelta(seconds=seconds)).strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'203.0.113.9 - - [{stamp}] "GET {page} HTTP/1.1" 200 5 "-" "Firefox/145.0"\n'.encode()


def put(landing: Path, data: bytes, name: str = "a.log") -> Path:
    path = landing / "access_logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
