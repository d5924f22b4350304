"""`blogdata ui`: Dagster's UI and daemon, with the Spark server they need."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from blogdata.cli.output import console
from blogdata.errors import ConfigurationError, TransientError
from blogdata.operate import dagster_home, secrets, spark_connect, ui_guard
from blogdata.operate.config import Settings, load
from blogdata.operate.dagster_home import ANALYTICS, PLATFORM
from blogdata.operate.processes import Detached

ROOT = Path(__file__).resolve().parents[3]
"""The checkout; where the package is installed, no other team has its code beside it."""


def code_server(name: str, module: str, interpreter: str, path: Path, *options: str) -> list[str]:
    """Return the command of the process that serves a code location at a socket."""
    # Behind a code server is a further one, at a socket in the folder for temporary files.
    tied = [interpreter, "-m", "blogdata.operate.ends_with_parent", str(path.parent)]
    server = ["dagster", "code-server", "start", "--socket", str(path), "--location-name", name]
    return [*tied, *server, "--log-level", "warning", "-m", module, *options]


def _code_servers(folder: Path) -> dict[str, list[str]]:
    """Return the commands by the names of the code locations, which are those of their sockets in a folder."""
    servers = {PLATFORM: code_server(PLATFORM, "definitions", sys.executable, folder / PLATFORM)}
    project = ROOT / "analytics"
    if not (project / ".venv" / "bin" / "python").exists():
        console.print("the analytics team's code location is not set up, and is not served: make setup")
        return servers
    # An interpreter of its own: it has none of the platform's dependencies.
    options = ("--working-directory", str(ROOT), "--use-python-environment-entry-point")
    interpreter, path = str(project / "interpreter"), folder / ANALYTICS
    return {**servers, ANALYTICS: code_server(ANALYTICS, "analytics.definitions", interpreter, path, *options)}


def answers(path: Path) -> bool:
    """Return whether a code server listens at a socket: it does so once it has loaded its definitions."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


class Supervisor:
    """Processes by their names in messages; :mod:`blogdata.operate.ends_with_parent` ends them with this one."""

    def __init__(self) -> None:
        self._running: dict[str, Detached] = {}

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        # In a session of its own an interrupt from the terminal reaches it from here only, once.
        self._running[name] = Detached(
            list(command), env=dict(environment), stdin=subprocess.PIPE, start_new_session=True
        )

    def check(self) -> None:
        """Raise TransientError if one of them has ended."""
        for name, process in self._running.items():
            if (code := process.poll()) is not None:
                how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
                raise TransientError(
                    what=f"{name} ended by itself: {how}",
                    where=f"process {process.pid}",
                    next_step="look at its output above, and start again",
                )

    def stop(self, names: Sequence[str], *, seconds: float, kill: bool) -> None:
        """End those of some that run, within seconds together; slower ones are killed, or left to end by themselves."""
        chosen = [self._running.pop(name) for name in names if name in self._running]
        for process in chosen:
            assert process.stdin is not None
            # Nothing was written, so nothing is flushed into the pipe of one that has ended.
            process.stdin.close()
        deadline = time.monotonic() + seconds
        for process in chosen:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=max(0.0, deadline - time.monotonic()))
            if kill and process.poll() is None:
                process.kill()
                process.wait()


_DAEMON = "Dagster's daemon"
# How long the daemon may take to end, and how long a code server is waited for that is at a step.
_END_SECONDS, _STEP_SECONDS = 60.0, 10.0
_LOOK_SECONDS = 0.5


def ui(
    port: Annotated[int, typer.Option(help="Port of the web server")] = 3000,
    host: Annotated[str, typer.Option(help="Address the web server listens at")] = "127.0.0.1",
    automatic: Annotated[
        bool, typer.Option("--automatic", help="Everything runs by itself: what lands, what follows from it, the clock")
    ] = False,
    open_: Annotated[
        bool, typer.Option("--open", help="Sign a browser in; where the UI is already served, only that")
    ] = False,
) -> None:
    """Serve Dagster's UI, run its daemon, and keep Spark warm, until Ctrl-C.

    The UI is the owner's: the link that is printed signs a browser in, and can be used for ten minutes.
    """
    settings = load()
    home = dagster_home.render(settings)
    if open_ and dagster_home.ui_address(home) is not None:
        _sign_in(settings, home, opened=True)
        return
    listener = _listener(host, port)
    if settings.spark.remote is None:
        server = spark_connect.running_server(settings)
        console.print(f"Spark is ready at {spark_connect.without_token(server.url)}")
    with dagster_home.serving(home, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"):
        # Dagster takes seconds to import, and the other commands answer at once.
        from blogdata.runs import killed_runs

        with dagster_home.open_instance(settings) as instance:
            killed_runs.settle(instance, launched=True)
        # A shell that starts this in the background may have it ignore interrupts, and its children would inherit that.
        # An exception of a signal's handler can be lost where it is raised, such as in an import's callback.
        signals: list[int] = []
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _frame: signals.append(number))
        automatic = automatic or settings.run_automatically
        _serve(settings, home, listener, signals, automatic=automatic, opened=open_)
        console.print("stopped; a step under way ends by itself; Spark stays until: blogdata down")


def _serve(
    settings: Settings,
    home: Path,
    listener: socket.socket,
    signals: Sequence[int],
    *,
    automatic: bool,
    opened: bool,
) -> None:
    """Serve until a signal is received."""
    # Only its owner enters it: code servers execute what they are sent. A socket's path is at most 103 bytes long.
    folder, running = Path(tempfile.mkdtemp(prefix="blogdata-")), Supervisor()
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "BLOGDATA_HOME": str(settings.home),
        "BLOGDATA_AUTOMATIC": str(automatic).lower(),
        # What the analytics team's location has to know: where gold is, and where its own files go.
        "ANALYTICS_GOLD": str(settings.lake / "gold"),
        "ANALYTICS_HOME": str(settings.home / "analytics"),
        "ANALYTICS_AUTOMATIC": str(automatic).lower(),
    }
    commands = _code_servers(folder)
    sockets = {name: folder / name for name in commands}
    servers = {name: f"the code server of {name}" for name in commands}
    try:
        for name, command in commands.items():
            running.start(servers[name], command, environment)
        # It imports what takes seconds, as the code servers do meanwhile.
        from blogdata.cli import ui_server

        while not all(map(answers, sockets.values())):
            if signals:
                return
            running.check()
            time.sleep(0.1)
        workspace = dagster_home.workspace_file(home, sockets)
        # Dagster colours its lines in any other format, also in a file.
        words = ["--log-level", "warning", "--log-format", "colored" if sys.stdout.isatty() else "json"]
        with_this = [sys.executable, "-m", "blogdata.operate.ends_with_parent", ""]
        daemon = [*with_this, "dagster-daemon", "run", *words, "--workspace", str(workspace)]
        running.start(_DAEMON, daemon, environment)
        with ui_server.server(settings, workspace=workspace) as web:
            serving = threading.Thread(target=web.run, kwargs={"sockets": [listener]})
            serving.start()
            try:
                _sign_in(settings, home, opened=opened)
                while serving.is_alive() and not signals:
                    running.check()
                    time.sleep(_LOOK_SECONDS)
            finally:
                web.should_exit = True
                serving.join()
        if not signals:
            raise TransientError(what="the web server ended by itself", where=str(home), next_step="start again")
    finally:
        running.stop([_DAEMON], seconds=_END_SECONDS, kill=True)
        running.stop(list(servers.values()), seconds=_STEP_SECONDS, kill=False)
        with contextlib.suppress(OSError):
            folder.rmdir()


def _sign_in(settings: Settings, home: Path, *, opened: bool) -> None:
    """Say where the UI is: with a link that signs in where a person reads it, and in a browser if that is asked for."""
    url = str(dagster_home.ui_address(home))
    link = ui_guard.sign_in_link(url, secrets.read(settings, dagster_home.UI_TOKEN).reveal())
    # What is no terminal keeps it, such as a log.
    address = link if opened or sys.stdout.isatty() else f"{url} (sign in: blogdata ui --open)"
    console.print(f"open {address}")
    if opened:
        webbrowser.open(ui_guard.sign_in_page(home, link).as_uri())


def _listener(host: str, port: int) -> socket.socket:
    """Listen at once, before anything starts: nobody else gets the port, and the sign-in link, meanwhile."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ConfigurationError(
            what=f"port {port} cannot be used: {error.strerror}",
            where=f"{host}:{port}",
            next_step="end what uses it, or choose another port: blogdata ui --port 3001",
        ) from error
