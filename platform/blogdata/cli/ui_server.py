"""The web server of `blogdata ui`: Dagster's application behind the owner's guard, and the route for events."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import uvicorn
from dagster_webserver.app import create_app_from_workspace_process_context
from dagster_webserver.version import __version__
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from blogdata.cli import event_route
from blogdata.operate import dagster_home, secrets, ui_guard
from blogdata.operate.config import Settings
from blogdata.operate.dagster_internals import WorkspaceFileTarget, WorkspaceProcessContext
from quality.contracts import CONTRACTS

WAY_IN = "On its machine, as the user it belongs to, type: blogdata ui --open"
# Those of Dagster's own command: milliseconds of a statement, seconds of a connection's life, connections.
_STORAGE_LIMITS = (15_000, 3_600, 20)
_POLL_MILLISECONDS = 2_000
# A page that is open holds a web socket, which would keep the server from ending.
_SHUTDOWN_SECONDS = 5


@contextmanager
def server(settings: Settings, *, workspace: Path) -> Iterator[uvicorn.Server]:
    """Open Dagster's storage and the workspace, and build the server."""
    target = WorkspaceFileTarget([str(workspace)])
    with (
        dagster_home.open_instance(settings) as instance,
        WorkspaceProcessContext(instance, target, version=__version__) as opened,
    ):
        instance.optimize_for_webserver(*_STORAGE_LIMITS)
        app = create_app_from_workspace_process_context(opened, live_data_poll_rate=_POLL_MILLISECONDS)
        # Senders of events have a token of their own, and reach nothing else.
        events = secrets.read(settings, event_route.TOKEN).reveal()
        routes = [event_route.route(settings.landing, events, CONTRACTS), _health(instance)]
        app.router.routes[:0] = routes
        token = secrets.read(settings, dagster_home.UI_TOKEN).reveal()
        app.add_middleware(ui_guard.UiGuard, token=token, open=routes, way_in=WAY_IN)
        yield uvicorn.Server(
            uvicorn.Config(app, log_level="warning", server_header=False, timeout_graceful_shutdown=_SHUTDOWN_SECONDS)
        )


def _health(instance: dg.DagsterInstance) -> Route:
    def health(_: Request) -> Response:
        healthy = dagster_home.is_beating(instance, time.time())
        return PlainTextResponse("ok\n" if healthy else "not ok\n", 200 if healthy else 503)

    return Route(dagster_home.HEALTH, health)
