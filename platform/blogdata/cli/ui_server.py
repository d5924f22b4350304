"""The web server of `blogdata ui`: Dagster's application behind the owner's guard, and the route for events."""

from __future__ import annotations

import argparse
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import dagster as dg
import uvicorn
from dagster_webserver.app import create_app_from_workspace_process_context
from dagster_webserver.version import __version__
from deltalake.exceptions import DeltaError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from blogdata.cli.ui_command import PLATFORM
from blogdata.errors import PlatformError
from blogdata.orchestration import external_events
from blogdata.services import dagster_home, ends_with_parent, secrets, ui_guard
from blogdata.services.config import Settings, load
from blogdata.services.dagster_internals import WorkspaceFileTarget, WorkspaceProcessContext
from quality.contracts import CONTRACTS
from resources.zone import Span, days_of

_LOOK_SECONDS = 10.0


@contextmanager
def followed(settings: Settings, known: Span, load: Callable[[], None]) -> Iterator[None]:
    """Load the partitions anew when the deployment's days have changed, beside what the caller does."""
    ended = threading.Event()
    thread = threading.Thread(target=_follow, args=(settings, known, load, ended), name="moved-days")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _follow(settings: Settings, known: Span, load: Callable[[], None], ended: threading.Event) -> None:
    while not ended.wait(_LOOK_SECONDS):
        try:
            days = days_of(settings)
        except (OSError, DeltaError, PlatformError):
            # A storage that does not answer is everybody's fault but of this page; the next look finds it.
            continue
        if days != known:
            load()
            known = days


WAY_IN = "On its machine, as the user it belongs to, type: blogdata ui --open"
# Those of Dagster's own command: milliseconds of a statement, seconds of a connection's life, connections.
_STORAGE_LIMITS = (15_000, 3_600, 20)
_POLL_MILLISECONDS = 2_000
# A page that is open holds a web socket, which would keep the server from ending.
_SHUTDOWN_SECONDS = 5


@contextmanager
def server(
    settings: Settings, *, workspace: Path, read_only: bool, days: Span | None = None
) -> Iterator[uvicorn.Server]:
    """Open Dagster's storage and the workspace, and build the server; partitions follow the days, if they are given."""
    with dagster_home.open_instance(settings) as instance:
        instance.optimize_for_webserver(*_STORAGE_LIMITS)
        target = WorkspaceFileTarget([str(workspace)])
        with (
            WorkspaceProcessContext(instance, target, version=__version__, read_only=read_only) as found,
            followed(settings, days, lambda: found.reload_code_location(PLATFORM)) if days else nullcontext(),
        ):
            app = create_app_from_workspace_process_context(found, live_data_poll_rate=_POLL_MILLISECONDS)
            # Senders of events have a token of their own, and reach nothing else.
            events = secrets.read(settings, external_events.TOKEN).reveal()
            routes = [external_events.route(settings.landing, events, CONTRACTS), _health(instance)]
            app.router.routes[:0] = routes
            token = secrets.read(settings, dagster_home.UI_TOKEN).reveal()
            app.add_middleware(ui_guard.UiGuard, token=token, open=routes, way_in=WAY_IN)
            yield uvicorn.Server(
                uvicorn.Config(
                    app, log_level="warning", server_header=False, timeout_graceful_shutdown=_SHUTDOWN_SECONDS
                )
            )


def _health(instance: dg.DagsterInstance) -> Route:
    def health(_: Request) -> Response:
        healthy = dagster_home.is_beating(instance, time.time())
        return PlainTextResponse("ok\n" if healthy else "not ok\n", 200 if healthy else 503)

    return Route(dagster_home.HEALTH, health)


def main() -> None:
    """Serve until the process that started this one ends, or asks for it."""
    ends_with_parent.end_with_parent()
    options = argparse.ArgumentParser()
    options.add_argument("--listener", type=int, required=True, help="Number of the open socket it listens at")
    options.add_argument("--workspace", type=Path, required=True)
    options.add_argument("--read-only", action="store_true")
    options.add_argument("--days", required=True, help="Days that have partitions, like 2026-01-05..2026-01-07")
    given = options.parse_args()
    first, _, last = given.days.partition("..")
    days = Span(first=first, last=last or None)
    with (
        # The server raises the interrupt again once it has ended.
        contextlib.suppress(KeyboardInterrupt),
        server(load(), workspace=given.workspace, read_only=given.read_only, days=days) as found,
    ):
        found.run(sockets=[socket.socket(fileno=given.listener)])


if __name__ == "__main__":
    main()
