"""A server that speaks what the documentation of OpenBao says of its key-value engine, version 2."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from served_http import served

_PATH = re.compile(r"/v1/secret/(data|metadata)/(.+)")


@dataclass
class Bao:
    """What the server has, and what it was asked.

    Args:
        address: Its root address.
        tokens: Tokens that it takes.
        entries: Path to the versions of an entry, None for a deleted one.
        asked: Method and path of each request.
        answers: Statuses that it answers next, whatever it is asked.
    """

    address: str = ""
    tokens: set[str] = field(default_factory=set)
    entries: dict[str, list[dict[str, str] | None]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    def put(self, path: str, value: str) -> None:
        """Store a version."""
        self.entries.setdefault(path, []).append({"value": value})

    def read(self, path: str, version: str | None) -> tuple[int, Any]:
        """Read a version of an entry."""
        versions = self.entries.get(path, [])
        number = int(version or 0) or len(versions)
        if not 0 < number <= len(versions):
            return 404, {"errors": []}
        found = versions[number - 1]
        return 200 if found else 404, {"data": {"data": found, "metadata": {"version": number, **_state(found)}}}

    def write(self, path: str, content: dict[str, Any]) -> tuple[int, Any]:
        """Write a version, if the current one is the one that is expected."""
        versions = self.entries.setdefault(path, [])
        if content.get("options", {}).get("cas", len(versions)) != len(versions):
            return 400, {"errors": ["check-and-set parameter did not match the current version"]}
        versions.append(content["data"])
        return 200, {"data": {"version": len(versions), **_state({})}}

    def metadata(self, path: str) -> tuple[int, Any]:
        """List the versions of an entry."""
        versions = self.entries.get(path)
        if not versions:
            return 404, {"errors": []}
        listed = {str(number): _state(found) for number, found in enumerate(versions, 1)}
        return 200, {"data": {"current_version": len(versions), "versions": listed}}


def _state(found: dict[str, str] | None) -> dict[str, Any]:
    return {"destroyed": False, "deletion_time": "" if found is not None else "2026-01-05T10:00:00.123456789Z"}


@contextmanager
def openbao(**content: Any) -> Iterator[Bao]:
    """Run a server."""
    bao = Bao(**content)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, content: dict[str, Any]) -> None:
            bao.asked.append(f"{self.command} {self.path}")
            status, answer = (bao.answers.pop(0), {"errors": [str(content)]}) if bao.answers else self._found(content)
            body = json.dumps(answer).encode()
            self.send_response(status)
            if status in (301, 302, 307):
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _found(self, content: dict[str, Any]) -> tuple[int, Any]:
            parts = urlsplit(self.path)
            if self.headers.get("X-Vault-Token") not in bao.tokens:
                return 403, {"errors": ["permission denied"]}
            match = _PATH.fullmatch(parts.path)
            if match is None:
                return 404, {"errors": ["no handler for route"]}
            if match[1] == "metadata":
                return bao.metadata(match[2])
            if self.command == "POST":
                return bao.write(match[2], content)
            return bao.read(match[2], parse_qs(parts.query).get("version", [None])[0])

        def log_message(self, *_: Any) -> None:
            pass

    with served(Handler) as bao.address:
        yield bao
