"""Admits to Dagster's web server only its owner's browser and programs: one middleware, for pages and sockets.

Dagster's web server has no login: whoever reaches its port, also by a page in the owner's browser, launches runs as the
owner. What is passed on

- brings the session cookie, which a sign-in link sets, or the token itself as `Authorization: Bearer`. A foreign name
  that resolves to this address (DNS rebinding) has no cookie: it belongs to the name that signed in;
- is of no page of another server: `Origin`, if there is one, is the name that was asked;
- asks for GraphQL by POST, if it is no web socket: with an image of a foreign page browsers send no `Origin`.

Cookies know no ports: a browser that has signed in at 127.0.0.1 sends the cookie to every port of that name.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from blogdata.files import write_atomically

LINK = "link"
"""Query parameter of a sign-in link."""
LINK_SECONDS = 600.0
"""How long a sign-in link can be used: browsers and terminals keep what they have shown."""
COOKIE = "blogdata_session"
_NOT_STORED = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


def sign_in_link(url: str, token: str) -> str:
    until = str(int(time.time() + LINK_SECONDS))
    return f"{url}/?{LINK}={until}.{_derived(token, f'link {until}')}"


def sign_in_page(home: Path, link: str) -> Path:
    """Write a page that leads to a sign-in link: everybody on the machine sees the arguments of a browser."""
    page = home / "sign-in.html"
    text = f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(link)}">'
    write_atomically(page, text.encode())
    return page


def _derived(token: str, purpose: str) -> str:
    return hmac.new(token.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


@dataclass(frozen=True)
class UiGuard:
    """The middleware; `open`: routes that check their callers themselves; `way_in`: how to sign in, for strangers."""

    app: ASGIApp
    token: str
    open: Collection[Route]
    way_in: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or any(route.matches(scope)[0] is Match.FULL for route in self.open):
            await self.app(scope, receive, send)
        elif (refused := self._refused(HTTPConnection(scope))) is None:
            await self.app(scope, receive, _framed_by_itself_only(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await refused(scope, receive, send)

    def _refused(self, asked: HTTPConnection) -> Response | None:
        is_page = asked.scope["type"] == "http"
        name = asked.headers.get("host", "").lower()
        same = (f"http://{name}", f"https://{name}")
        if any(origin.lower() not in same for origin in asked.headers.getlist("origin")):
            return PlainTextResponse("a page of another server may not ask here; a proxy passes `Host` on\n", 403)
        # A route of Starlette also matches before a line feed.
        if is_page and asked.scope["path"].rstrip("/\n") == "/graphql" and asked.scope["method"] != "POST":
            return PlainTextResponse("POST it\n", 405, {"Allow": "POST"})
        # An image or a frame of a page on this host's other ports, or of a sibling's name, comes with the cookie.
        is_others = asked.headers.get("sec-fetch-site") in ("same-site", "cross-site")
        if is_others and asked.headers.get("sec-fetch-mode") != "navigate":
            return PlainTextResponse("a page of another server may not ask here\n", 403)
        if is_page and LINK in asked.query_params:
            return self._signed_in(asked)
        scheme, _, bearer = asked.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(bearer.strip(), self.token):
            return None
        return None if _same(asked.cookies.get(COOKIE, ""), self._session()) else self._stranger()

    def _session(self) -> str:
        return _derived(self.token, "session")

    def _signed_in(self, asked: HTTPConnection) -> Response:
        until, _, signature = asked.query_params[LINK].partition(".")
        if not _same(signature, _derived(self.token, f"link {until}")) or int(until) < time.time():
            return self._stranger()
        # Not a redirect: of a link that another page has opened, browsers send no strict cookie to where it leads.
        page = '<!doctype html><title>Signed in</title><meta http-equiv="refresh" content="0; url=/">'
        answer = HTMLResponse(page, headers=_NOT_STORED)
        secure = asked.scope["scheme"] == "https"
        answer.set_cookie(COOKIE, self._session(), path="/", httponly=True, samesite="strict", secure=secure)
        return answer

    def _stranger(self) -> Response:
        text = f"Dagster's UI of this deployment is its owner's. {self.way_in}"
        # Browsers send no strict cookie with a link of another page, and send it with one of this page.
        again = 'Signed in already, and followed a link? <a href="">Open it again</a>.'
        page = f'<!doctype html><meta charset="utf-8"><title>Sign in</title><p>{text}</p><p>{again}</p>\n'
        return HTMLResponse(page, 401, {**_NOT_STORED, "WWW-Authenticate": "Bearer"})


def _framed_by_itself_only(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["X-Frame-Options"] = "SAMEORIGIN"
        await send(message)

    return sent
