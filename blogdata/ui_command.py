"""`blogdata ui`: Dagster's UI and daemon, with the Spark server they need."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from blogdata import code_locations, services_commands
from blogdata.output import console
from errors import ConfigurationError
from services import dagster_home, spark_connect, spark_probe
from services.config import Settings, load
from services.files import LockTimeout, locked


def ui(
    port: Annotated[int, typer.Option(help="Port of the web server")] = 3000,
    host: Annotated[str, typer.Option(help="Address the web server listens at")] = "127.0.0.1",
    automatic: Annotated[
        bool,
        typer.Option("--automatic", help="Everything runs by itself: what lands, what follows from it, the clock"),
    ] = False,
) -> None:
    """Serve Dagster's UI, run its daemon (sensors, schedules, backfills), and keep Spark warm; Ctrl-C ends them."""
    _free(host, port)
    settings = load()
    home = dagster_home.render(settings)
    if settings.spark.mode == "local":
        server = spark_connect.running_server(settings)
        console.print(f"Spark is ready at {spark_probe.without_token(server.url)}", markup=False)
    if settings.events.received:
        console.print(f"events: {services_commands.events_up(settings)['detail']}", markup=False)
    with _alone(home, f"{host}:{port}"):
        _settle(settings)
        raise typer.Exit(_serve(settings, home, host, port, automatic=automatic or settings.run_automatically))


def _serve(settings: Settings, home: Path, host: str, port: int, *, automatic: bool) -> int:
    console.print(f"open http://{host}:{port} (it takes some seconds until it answers)", markup=False)
    # `dagster dev` is what a deployment on one machine needs; hide the warning that it is superseded.
    quiet = ["-W", "ignore:Function `dev_command` is superseded"]
    locations = code_locations.options(home)
    command = [sys.executable, *quiet, "-m", "dagster", "dev", *locations, "-h", host, "-p", str(port)]
    own = {
        "DAGSTER_HOME": str(home),
        "BLOGDATA_HOME": str(settings.home),
        "BLOGDATA_AUTOMATIC": str(automatic).lower(),
        **code_locations.environment(settings, automatic=automatic),
    }
    environment = {**os.environ, **own}
    # A shell that starts this in the background may have it ignore interrupts, and its children would inherit that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    # In its own session the server gets each interrupt from here, exactly once, whatever its source.
    served = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        return served.wait()
    except KeyboardInterrupt:
        served.send_signal(signal.SIGINT)
        code = served.wait()
        console.print(
            "stopped; a step under way ends by itself; Spark and the receiver of events stay until: blogdata down"
        )
        return 0 if code in (0, 130, -2) else 1


@contextmanager
def _alone(home: Path, address: str) -> Iterator[None]:
    """Lock the UI of a deployment: two daemons would conflict over its sensors; the error names the first's address."""
    with ExitStack() as held:
        try:
            held.enter_context(locked(home / "ui.lock", seconds=0))
        except LockTimeout as error:
            raise ConfigurationError(
                what=f"the UI of this deployment is already served at {dagster_home.ui_address(home)}",
                where=str(home.parent),
                next_step="open that address, or end the other one first",
            ) from error
        dagster_home.note_ui_address(home, address)
        yield


def _settle(settings: Settings) -> None:
    # Dagster takes seconds to import, and the other commands answer at once.
    from orchestration import dead_runs

    with dagster_home.open_instance(settings) as instance:
        dead_runs.settle(instance)


def _free(host: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigurationError(
                what=f"port {port} cannot be used: {error.strerror}",
                where=f"{host}:{port}",
                next_step="end what uses it, or choose another port: blogdata ui --port 3001",
            ) from error
