"""A deployment whose UI runs: started by the command a person uses, queried through its GraphQL interface."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blogdata.operate import config, secrets
from blogdata.operate.dagster_home import UI_TOKEN
from blogdata.operate.processes import free_port
from blogdata.operate.ui_guard import sign_in_link

COMMAND = str(Path(sys.executable).with_name("blogdata"))
RUNS = (
    "query($f: RunsFilter) { runsOrError(filter: $f) { ... on Runs { results { runId status tags { key value } } } } }"
)
LAUNCH = (
    "mutation($p: ExecutionParams!) { launchRun(executionParams: $p) { __typename "
    "... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"
)


@dataclass(kw_only=True)
class Served:
    """A deployment of a test's own; the last of its simulated days is yesterday."""

    home: Path
    environ: Mapping[str, str]
    days: tuple[str, ...] = ()
    url: str = ""
    process: subprocess.Popen[bytes] | None = None

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environ = dict(self.environ)
        return subprocess.run([COMMAND, *arguments], env=environ, capture_output=True, text=True, check=False)

    def run(self, *arguments: str) -> str:
        done = self.call(*arguments)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    @property
    def token(self) -> str:
        return secrets.read(config.load({"BLOGDATA_HOME": str(self.home)}), UI_TOKEN).reveal()

    @property
    def link(self) -> str:
        return sign_in_link(self.url, self.token)

    def flags(self, *days: str) -> list[Path]:
        """List the paths of the flags of all hours of some days, present or not."""
        visits = self.home / "landing" / "visits"
        return [hour / "_SUCCESS" for day in days for hour in sorted((visits / f"date={day}").glob("hour=*"))]

    def start(self, *options: str) -> None:
        """Start the UI, and wait until it has loaded the definitions."""
        self.until(self.begin(*options), self._answers)

    def begin(self, *options: str) -> subprocess.Popen[bytes]:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        command, environ = [COMMAND, "ui", "--port", str(port), *options], dict(self.environ)
        with (self.home / "ui.log").open("wb") as log:
            self.process = subprocess.Popen(command, env=environ, stdout=log, stderr=subprocess.STDOUT)
        return self.process

    def until(self, process: subprocess.Popen[bytes], holds: Callable[[], bool], seconds: float = 240) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(1)

    @property
    def log(self) -> str:
        return (self.home / "ui.log").read_text()

    def stop(self) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=120)

    def ask(self, query: str, **variables: Any) -> Any:
        request = urllib.request.Request(
            f"{self.url}/graphql",
            data=json.dumps({"query": query, "variables": variables}).encode(),
            headers={"content-type": "application/json", "authorization": f"Bearer {self.token}"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = json.load(answer)
        assert "errors" not in found, found
        return found["data"]

    def runs(self, **having: str) -> list[tuple[str, dict[str, str]]]:
        """List runs with all these tags (`_` for `/`), newest first: status and tags."""
        tags = [{"key": key.replace("__", "/"), "value": value} for key, value in having.items()]
        found = self.ask(RUNS, f={"tags": tags})["runsOrError"]["results"]
        return [(run["status"], {tag["key"]: tag["value"] for tag in run["tags"]}) for run in found]

    def launch(self, job: str, *, location: str = "definitions", **ops: Any) -> str:
        """Launch a job with a configuration of its ops; return the run's identifier."""
        selector = {"repositoryLocationName": location, "repositoryName": "__repository__", "jobName": job}
        config = {"ops": {op: {"config": given} for op, given in ops.items()}}
        launched = self.ask(LAUNCH, p={"selector": selector, "runConfigData": config})["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

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
