"""What somebody may ask Dagster's UI who only looks: every page, and no GraphQL but queries and subscriptions.

Each request is parsed as Dagster parses it, by the same functions, so that both find the same operations in it: a
document with a mutation is refused whichever operation it asks for, and so is what does not parse. Of all other paths,
nothing is passed on that is no GET or HEAD. The request is marked, so that the workspace lets it change nothing either.
"""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLError, OperationDefinitionNode, OperationType, parse
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse

from blogdata.services.ui_guard import App, Message, Receive, Scope, Send

_MARK = "blogdata.only_looks"
_LARGEST = 4_000_000
"""Bytes of a request; those of Dagster's pages have some thousands."""
_HARMLESS = ("connection_init", "stop", "connection_terminate")
"""Other messages of the protocol `graphql-ws`, which Dagster speaks; of another protocol, none is let through."""
_REFUSED = "who only looks starts and changes nothing here\n"


def only_looks(source: object) -> bool:
    """Return whether a request is of somebody who only looks."""
    return isinstance(getattr(source, "scope", None), MutableMapping) and bool(source.scope.get(_MARK))  # type: ignore[attr-defined]


def changes_nothing(document: object) -> bool:
    """Return whether a GraphQL document has operations, none of which is a mutation."""
    try:
        definitions = parse(document).definitions if isinstance(document, str) else ()
    except (GraphQLError, RecursionError):
        return False
    operations = [each.operation for each in definitions if isinstance(each, OperationDefinitionNode)]
    return bool(operations) and OperationType.MUTATION not in operations


@dataclass(frozen=True, kw_only=True)
class Viewing:
    """The layer for who only looks, itself an ASGI application."""

    app: App

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what may change something, and pass on the rest, marked."""
        marked = {**scope, _MARK: True}
        if scope["type"] == "websocket":
            await self.app(marked, _without_mutations(receive, send), send)
        elif scope["method"] != "POST":
            await self.app(marked, receive, send)
        elif scope["path"] == "/graphql" and (body := await _body(scope, receive)) and changes_nothing(_query(body)):
            await self.app(marked, _again(body, receive), send)
        else:
            await PlainTextResponse(_REFUSED, 403)(scope, receive, send)


async def _body(scope: Scope, receive: Receive) -> bytes | None:
    """Read the body of a request; None if it is too large, or never ends."""
    read = b""
    try:
        async for part in Request(scope, receive).stream():
            read += part
            if len(read) > _LARGEST:
                return None
    except ClientDisconnect:
        return None
    return read


def _query(body: bytes | str) -> object:
    """Return the document of a request in JSON; None if there is none."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return asked.get("query") if isinstance(asked, dict) else None


def _again(body: bytes, receive: Receive) -> Receive:
    """Return what receives a body that has been read, and then what else comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return left.pop() if left else await receive()

    return received


def _without_mutations(receive: Receive, send: Send) -> Receive:
    """Return what receives the messages of a web socket until one may change something: then it is closed."""

    async def received() -> Message:
        message = await receive()
        if message["type"] == "websocket.receive" and not _only_subscribes(message.get("text")):
            await send({"type": "websocket.close", "code": 1008})
            return {"type": "websocket.disconnect", "code": 1008}
        return message

    return received


def _only_subscribes(text: str | None) -> bool:
    try:
        said: Any = json.loads(text or "")
    except (ValueError, RecursionError):
        return False
    if not isinstance(said, dict) or said.get("type") != "start":
        return isinstance(said, dict) and said.get("type") in _HARMLESS
    payload = said.get("payload")
    return isinstance(payload, dict) and changes_nothing(payload.get("query"))
