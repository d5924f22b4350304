"""Dagster's web server as `blogdata ui` serves it, with the analytics team's location, and without daemon or Spark."""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from blogdata.cli import ui_command
from blogdata.cli.ui_command import ROOT, Supervisor
from blogdata.operate import config, dagster_home, secrets, ui_guard
from blogdata.operate.config import Settings
from blogdata.operate.dagster_home import ANALYTICS


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a request."""

    status: int
    headers: Mapping[str, str]
    text: str


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """A web server of this process."""

    settings: Settings
    port: int
    token: str
    sockets: Path
    instance: dg.DagsterInstance

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def cookie(self) -> dict[str, str]:
        link = ui_guard.sign_in_link(self.url, self.token).removeprefix(self.url)
        return {"cookie": self.ask("GET", link).headers["set-cookie"].partition(";")[0]}

    @property
    def bearer(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        """Send exactly these headers (`_` for `-`); add `Host` unless it is among them, omit it if empty."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host="host" in sent)
        if body is not None:
            sent["content-length"] = str(len(body.encode()))
        for name, value in sent.items():
            if value or name != "host":
                connection.putheader(name, value)
        connection.endheaders(None if body is None else body.encode())
        try:
            answer = connection.getresponse()
            # The body of a web socket never ends.
            text = "" if answer.status == 101 else answer.read().decode(errors="replace")
            return Answer(status=answer.status, headers={k.lower(): v for k, v in answer.getheaders()}, text=text)
        finally:
            connection.close()

    def graphql(self, query: str, variables: Mapping[str, Any] | None = None, **headers: str) -> Answer:
        """Query the GraphQL interface as Dagster's pages do."""
        body = json.dumps({"query": query, "variables": variables or {}})
        return self.ask("POST", "/graphql", body, **{"content_type": "application/json", **headers})


@contextmanager
def serving(home: Path) -> Iterator[Guarded]:
    settings = config.load({"BLOGDATA_HOME": str(home), "PATH": os.environ.get("PATH", "")})
    dagster = dagster_home.render(settings)
    folder = Path(tempfile.mkdtemp(prefix="blogdata-"))
    path, options = folder / ANALYTICS, ("--working-directory", str(ROOT))
    command = ui_command.code_server(ANALYTICS, "analytics.definitions", sys.executable, path, *options)
    environment = {**os.environ, "DAGSTER_HOME": str(dagster), "BLOGDATA_HOME": str(home)}
    running = Supervisor()
    with ExitStack() as stack:
        stack.callback(running.stop, [ANALYTICS], seconds=60, kill=True)
        running.start(ANALYTICS, command, environment)
        while not ui_command.answers(path):
            running.check()
            time.sleep(0.1)
        workspace = dagster_home.workspace_file(dagster, {ANALYTICS: path})
        port = stack.enter_context(_listening(settings, workspace))
        yield Guarded(
            settings=settings,
            port=port,
            token=secrets.read(settings, dagster_home.UI_TOKEN).reveal(),
            sockets=folder,
            instance=stack.enter_context(dagster_home.open_instance(settings)),
        )


@contextmanager
def _listening(settings: Settings, workspace: Path) -> Iterator[int]:
    # Seconds of imports, of which the tests that serve nothing have no use.
    from blogdata.cli import ui_server

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with ui_server.server(settings, workspace=workspace) as found:
        thread = threading.Thread(target=found.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield port
        finally:
            found.should_exit = True
            thread.join()
