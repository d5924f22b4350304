"""The HTTP entrance of the External Trigger: a route that has an event on the disk before its sender is answered."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Collection
from pathlib import Path

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from blogdata.landing.external_trigger import MOST_BYTES, EventRefused, keep, parse

PATH = "/events"
TOKEN = "events"
"""Name of the secret that senders show."""
_SECONDS = 10.0
"""How long a body may take to arrive."""


def route(landing: Path, token: str, datasets: Collection[str]) -> Route:
    """Build the route; an event that cannot be kept is an error 500, and its sender sends it again."""

    async def receive(request: Request) -> JSONResponse:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
            # The body of somebody without the token is not read.
            return _refusal(401, "it lacks the token", "send the header: Authorization: Bearer TOKEN")
        try:
            body = await asyncio.wait_for(_body(request), _SECONDS)
            event = parse(body, datasets)
        except asyncio.TimeoutError:
            return _refusal(408, f"its body did not arrive within {_SECONDS:g} seconds", "send it again")
        except ClientDisconnect:
            return _refusal(400, "its body is shorter than stated", "send it again")
        except EventRefused as error:
            return _refusal(413 if len(body) > MOST_BYTES else 400, error.what, error.next_step)
        await asyncio.to_thread(keep, event, landing)
        return JSONResponse({"event": event.key}, 202)

    return Route(PATH, receive, methods=["POST"])


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            break
    return body


def _refusal(status: int, error: str, next_step: str) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse({"error": error, "next": next_step}, status, headers)
