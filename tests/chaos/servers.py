"""The Spark servers of a campaign: one that lasts, and doomed ones that are killed.

Rounds that kill no server share a warm one. Each killed server costs a new one: a doomed server is started with the
platform's own command, on another port, from a class archive, and tuned for a short life (fast compilation instead of
optimized code). A spare boots while another works, and replaces a killed server in the state file that the platform
reads.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import psutil

from blogdata.durable.whole_file import write_atomically
from blogdata.services import config, processes, spark_connect
from blogdata.services.processes import ProcessIdentity
from kills import kill
from lineage.deployment import Deployment

QUICK = ("-XX:TieredStopAtLevel=1",)
_DUMP_SECONDS = 180


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server of a campaign: its process, and its entry in the platform's state file."""

    process: ProcessIdentity
    state: dict[str, Any]


class Servers:
    """The lasting server, the working doomed server, and its spare.

    Args:
        folder: Folder of logs and properties.
        fixed: Settings that all deployments of the campaign share, as TOML.
        archive: Folder with class archives from which servers are started; None: no archives.
        spares: Whether a doomed server works beside the lasting one, with a spare booting all the time; otherwise the
            lasting server is killed first.
    """

    def __init__(self, folder: Path, fixed: str, *, archive: Path | None, spares: bool) -> None:
        self._folder = folder
        self._archive: Path | None = None
        self._spares = spares
        self._number = 0
        self._lasting = self._the_platforms_own(fixed)
        self._spare: Server | None = None
        if archive is not None:
            # An archive fits one Java and one class path.
            fits = sha256(" ".join([self._command[0], *self._command[self._command.index("-cp") :][:2]]).encode())
            self._archive = archive / f"classes-{fits.hexdigest()[:12]}.jsa"
        self._doomed = self._start(self._training()) if spares else self._lasting

    def _the_platforms_own(self, fixed: str) -> Server:
        home = self._folder / "platform"
        home.mkdir(parents=True)
        (home / "blogdata.toml").write_text(fixed)
        settings = config.load(overrides={"BLOGDATA_HOME": str(home)})
        server = spark_connect.running_server(settings)
        process = psutil.Process(server.pid)
        self._command, self._environment = process.cmdline(), process.environ()
        self._properties = next(word for word in self._command if word.endswith("server.conf"))
        self._configuration = Path(self._properties).read_text()
        self._state = json.loads((home / "services" / "spark" / "server.json").read_text())
        assert server.process is not None
        return Server(process=server.process, state=self._state)

    def _training(self) -> tuple[str, ...]:
        """Return the JVM option that makes a server record its classes, if there is no archive yet."""
        if self._archive is None or self._archive.is_file():
            return ()
        return (f"-XX:ArchiveClassesAtExit={self._archive}",)

    def trained(self) -> None:
        """Write the archive from the classes loaded so far; later servers start from it."""
        if self._training():
            os.kill(self._doomed.process.pid, signal.SIGTERM)
            deadline = time.monotonic() + _DUMP_SECONDS
            while processes.is_alive(self._doomed.process):
                assert time.monotonic() < deadline, "the server does not stop"
                time.sleep(0.1)
            self._doomed = self._start()
        self._prepare()

    def _prepare(self) -> None:
        if self._spares and self._spare is None:
            self._spare = self._start()

    def _start(self, more: tuple[str, ...] = ()) -> Server:
        self._number += 1
        port = processes.free_port()
        properties = self._folder / f"server-{self._number}.conf"
        lines = [
            f"spark.connect.grpc.binding.port {port}" if line.startswith("spark.connect.grpc.binding.port ") else line
            for line in self._configuration.splitlines()
        ]
        properties.write_text("\n".join(lines) + "\n")
        scratch = self._folder / f"scratch-{self._number}"
        options = [*QUICK, *more]
        if self._archive is not None and self._archive.is_file():
            options.append(f"-XX:SharedArchiveFile={self._archive}")
        replaced = {self._properties: str(properties)}
        words = [replaced.get(word, word) for word in self._command if not word.startswith("-Dblogdata.service=")]
        process = processes.start(
            [words[0], *options, *words[1:]],
            environment={**self._environment, "SPARK_LOCAL_DIRS": str(scratch)},
            log=self._folder / f"server-{self._number}.log",
            folder=self._folder,
        )
        url = self._state["url"].replace(self._state["url"].split(":")[2].split("/")[0], str(port), 1)
        return Server(
            process=process, state={**self._state, "pid": process.pid, "created": process.created, "url": url}
        )

    def serve(self, deployment: Deployment, *, doomed: bool) -> None:
        """Make a deployment use a server, even if it is still booting.

        Args:
            deployment: The deployment.
            doomed: Whether it will be killed.
        """
        state = deployment.settings.service_folder("spark") / "server.json"
        server = self._doomed if doomed else self._lasting
        write_atomically(state, json.dumps(server.state).encode(), mode=0o600)

    def kill(self, deployment: Deployment) -> None:
        """Kill the doomed server with -9; the spare replaces it."""
        kill(self._doomed.process)
        self._doomed = self._spare or self._start()
        self._spare = None
        self.serve(deployment, doomed=True)
        self._prepare()

    def stop(self) -> None:
        """Stop all servers."""
        for server in (self._lasting, self._doomed, self._spare):
            if server is not None:
                processes.stop(server.process)
        for scratch in self._folder.glob("scratch-*"):
            shutil.rmtree(scratch, ignore_errors=True)
