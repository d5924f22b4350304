"""Admits to Dagster's web server only its owner's browser and programs: one layer around it, for pages and sockets.

Dagster's web server has no login: whoever reaches its port, also by a page in the owner's browser, launches runs as the
owner. Before this layer passes a request or a web socket on,

- its `Host` must be a name of this server, so that a foreign name that resolves to this address (DNS rebinding) is
  refused, and its `Origin`, if there is one, too (a foreign page in the owner's browser);
- only POST with JSON has an effect: a form or an image of a foreign page sends neither;
- it must bring the session cookie, which a sign-in link sets, or the token itself as `Authorization: Bearer`. There are
  two tokens: the owner's, and one for who only looks, whose requests go through a layer that lets them change nothing.

Cookies know no ports: a browser that has signed in at 127.0.0.1 sends the cookie to every port of that name.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from blogdata.services.heartbeat import PATH

LINK = "link"
"""Query parameter of a sign-in link."""
LINK_SECONDS = 600.0
"""How long a sign-in link can be used: browsers and terminals keep what they have shown."""
COOKIE = "blogdata_session"
_HEALTH_SECONDS = 5.0
_NOT_STORED = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def hosts_of(address: str, port: int, names: Collection[str] = ()) -> frozenset[str]:
    """Return the values of `Host` that mean this server.

    Args:
        names: Further names, as browsers send them (`blog.example.com`, `blog.example.com:8443`), for instance those
            of a proxy.
    """
    own = {"127.0.0.1", "localhost", "[::1]", f"[{address}]" if ":" in address else address} - {"0.0.0.0", "[::]"}
    bare = own if port == 80 else set()
    return frozenset(name.lower() for name in (*(f"{name}:{port}" for name in own), *bare, *names))


def sign_in_link(url: str, token: str) -> str:
    """Return a link that signs a browser in for the next ten minutes."""
    until = str(int(time.time() + LINK_SECONDS))
    return f"{url}/?{LINK}={until}.{_derived(token, f'link {until}')}"


def _derived(token: str, purpose: str) -> str:
    return hmac.new(token.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def _session(token: str) -> str:
    return _derived(token, "session")


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


@dataclass(kw_only=True)
class UiGuard:
    """The layer, itself an ASGI application."""

    app: App
    token: str
    viewed: App
    viewer: str
    hosts: frozenset[str]
    healthy: Callable[[], bool]
    way_in: str
    _health: tuple[float, bool] = (float("-inf"), False)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is refused, and pass on the rest."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        asked = HTTPConnection(scope)
        if scope["type"] == "http" and scope["path"] == PATH:
            await (await self._health_answer())(scope, receive, send)
        elif not isinstance(answering := self._answering(asked), Response):
            await answering(scope, receive, _framed_by_itself_only(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await answering(scope, receive, send)

    def _answering(self, asked: HTTPConnection) -> App | Response:
        """Return what a request is passed on to, or the answer to one that is not."""
        host, origins = asked.headers.getlist("host"), asked.headers.getlist("origin")
        if len(host) != 1 or host[0].lower() not in self.hosts:
            return PlainTextResponse("this server has no such name: its owner may add it\n", 421)
        if any(_name_of(origin) not in self.hosts for origin in origins):
            return PlainTextResponse("a page of another server may not ask here\n", 403)
        if asked.scope["type"] == "http" and (refused := _without_effect_or_json(asked)):
            return refused
        if LINK in asked.query_params and asked.scope["type"] == "http":
            return self._signed_in(asked)
        if self._brings(asked, self.token):
            return self.app
        return self.viewed if self._brings(asked, self.viewer) else self._stranger(asked)

    def _brings(self, asked: HTTPConnection, token: str) -> bool:
        scheme, _, bearer = asked.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(bearer.strip(), token):
            return True
        return _same(asked.cookies.get(COOKIE, ""), _session(token))

    def _signed_in(self, asked: HTTPConnection) -> Response:
        until, _, signature = asked.query_params[LINK].partition(".")
        signed = (token for token in (self.token, self.viewer) if _same(signature, _derived(token, f"link {until}")))
        token = next(signed, None)
        if token is None or int(until) < time.time():
            return self._stranger(asked)
        # Not a redirect: of a link that another page has opened, browsers send no strict cookie to where it leads.
        page = '<!doctype html><title>Signed in</title><meta http-equiv="refresh" content="0; url=/">'
        answer = HTMLResponse(page, headers=_NOT_STORED)
        secure = asked.scope["scheme"] == "https"
        answer.set_cookie(COOKIE, _session(token), path="/", httponly=True, samesite="strict", secure=secure)
        return answer

    def _stranger(self, asked: HTTPConnection) -> Response:
        headers = {**_NOT_STORED, "WWW-Authenticate": "Bearer"}
        text = f"Dagster's UI of this deployment is its owner's. {self.way_in}"
        if "text/html" not in asked.headers.get("accept", ""):
            return PlainTextResponse(f"{text}\n", 401, headers)
        # Browsers send no strict cookie with a link of another page, and send it with one of this page.
        again = 'Signed in already, and followed a link? <a href="">Open it again</a>.'
        page = f'<!doctype html><meta charset="utf-8"><title>Sign in</title><p>{text}</p><p>{again}</p>'
        return HTMLResponse(page, 401, headers)

    async def _health_answer(self) -> Response:
        # Anyone may ask, as often as they like: the storage is asked every five seconds at most.
        async with self._asking:
            if time.monotonic() - self._health[0] > _HEALTH_SECONDS:
                self._health = (time.monotonic(), await asyncio.to_thread(self.healthy))
        healthy = self._health[1]
        return PlainTextResponse("ok\n" if healthy else "not ok\n", 200 if healthy else 503)


def _name_of(origin: str) -> str | None:
    """Return the name and port of an origin; None if it is no address."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _without_effect_or_json(asked: HTTPConnection) -> Response | None:
    """Refuse what could have an effect without being a POST of JSON."""
    method, path = asked.scope["method"], asked.scope["path"]
    if method not in ("GET", "HEAD", "POST") or (method != "POST" and path.rstrip("/") == "/graphql"):
        return PlainTextResponse("POST it as JSON\n", 405, {"Allow": "POST"})
    media = asked.headers.get("content-type", "").partition(";")[0].strip().lower()
    if method == "POST" and media != "application/json":
        return PlainTextResponse("POST it as JSON\n", 415)
    return None


def _framed_by_itself_only(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"x-frame-options", b"SAMEORIGIN")]}
        await send(message)

    return sent
