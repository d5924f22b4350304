"""A deployment whose UI runs: started by the command a person uses, queried through its GraphQL interface."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blogdata.operate import config, secrets
from blogdata.operate.dagster_home import UI_TOKEN
from blogdata.operate.processes import free_port

COMMAND = str(Path(sys.executable).with_name("blogdata"))


@dataclass(kw_only=True)
class Served:
    """A deployment of a test's own; `environ` is the environment of its commands."""

    home: Path
    environ: Mapping[str, str]
    url: str = ""
    process: subprocess.Popen[bytes] | None = None

    def run(self, *arguments: str) -> None:
        subprocess.run([COMMAND, *arguments], env=dict(self.environ), capture_output=True, check=True)

    @property
    def token(self) -> str:
        return secrets.read(config.load({"BLOGDATA_HOME": str(self.home)}), UI_TOKEN).reveal()

    def start(self, *options: str, seconds: float = 240) -> None:
        """Start the UI, and wait until it has loaded the definitions."""
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        with (self.home / "ui.log").open("wb") as log:
            self.process = subprocess.Popen(
                [COMMAND, "ui", "--port", str(port), *options],
                env=dict(self.environ),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + seconds
        while not self._answers():
            said = (self.home / "ui.log").read_text()
            assert self.process.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(1)

    def stop(self) -> int:
        """End the UI as Ctrl-C does; return its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=120)

    def ask(self, query: str, **variables: Any) -> Any:
        """Query the UI's GraphQL interface."""
        request = urllib.request.Request(
            f"{self.url}/graphql",
            data=json.dumps({"query": query, "variables": variables}).encode(),
            headers={"content-type": "application/json", "authorization": f"Bearer {self.token}"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = json.load(answer)
        assert "errors" not in found, found
        return found["data"]

    def _answers(self) -> bool:
        try:
            entries = self.ask(
                "{ workspaceOrError { ... on Workspace { locationEntries { locationOrLoadError { __typename } } } } }"
            )["workspaceOrError"]["locationEntries"]
        except OSError:
            return False
        # The platform's location, and the analytics team's where its environment is set up.
        loaded = [(entry["locationOrLoadError"] or {}).get("__typename") for entry in entries]
        return bool(loaded) and set(loaded) == {"RepositoryLocation"}


def environment(home: Path) -> dict[str, str]:
    """Build the environment of a separate deployment; of the user's deployment only the jars are shared."""
    kept = ("BLOGDATA_JARS", "BLOGDATA_MAVEN_MIRROR")
    own = ("BLOGDATA_", "SPARK_", "DAGSTER_")
    environ = {name: value for name, value in os.environ.items() if name in kept or not name.startswith(own)}
    return {**environ, "BLOGDATA_HOME": str(home), "BLOGDATA_SPARK_HEAP": "1g"}
