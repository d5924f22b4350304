"""The Spark server of a campaign, and a spare one that boots while the other works.

A server that was killed costs a new one. The spare is the platform's own command once more, on another port, started on
classes from an archive and compiled quickly rather than well; it takes the dead one's place in the state file where the
platform looks. When there is no spare, the platform starts a server by itself, as it always does.
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

from kills import kill
from lineage.deployment import Deployment
from services import config, processes, spark_connect
from services.files import write_atomically
from services.processes import ProcessIdentity

QUICK = ("-XX:TieredStopAtLevel=1",)
_DUMP_SECONDS = 180


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server of a campaign: its process, and what the platform's state file says of it."""

    process: ProcessIdentity
    state: dict[str, Any]


class Servers:
    """The one that works, and the one that will.

    Args:
        folder: Where logs and properties go.
        fixed: Settings that all deployments of the campaign share, as TOML.
        archive: Folder with archives of classes that servers are started from; None: they are started without.
        spares: Whether a spare one boots all the time.
    """

    def __init__(self, folder: Path, fixed: str, *, archive: Path | None, spares: bool) -> None:
        self._folder = folder
        self._archive: Path | None = None
        self._spares = spares
        self._number = 0
        self._read_platforms_command(fixed)
        self._spare: Server | None = None
        if archive is not None:
            # An archive fits one Java and one class path.
            fits = sha256(" ".join([self._command[0], *self._command[self._command.index("-cp") :][:2]]).encode())
            self._archive = archive / f"classes-{fits.hexdigest()[:12]}.jsa"
            processes.stop(self.current.process)
            self.current = self._start(self._training())

    def _read_platforms_command(self, fixed: str) -> None:
        home = self._folder / "platform"
        home.mkdir(parents=True)
        (home / "blogdata.toml").write_text(fixed)
        settings = config.load(overrides={"BLOGDATA_HOME": str(home)})
        server = spark_connect.ensure(settings)
        process = psutil.Process(server.pid)
        self._command, self._environment = process.cmdline(), process.environ()
        self._properties = next(word for word in self._command if word.endswith("server.conf"))
        self._configuration = Path(self._properties).read_text()
        self._state = json.loads((home / "services" / "spark" / "server.json").read_text())
        assert server.process is not None
        self.current = Server(process=server.process, state=self._state)

    def _training(self) -> tuple[str, ...]:
        """Give what has a server note its classes, when nobody has before."""
        if self._archive is None or self._archive.is_file():
            return ()
        return (f"-XX:ArchiveClassesAtExit={self._archive}",)

    def trained(self) -> None:
        """Write the archive, from what the server has loaded by now; later servers start from it."""
        if self._training():
            os.kill(self.current.process.pid, signal.SIGTERM)
            deadline = time.monotonic() + _DUMP_SECONDS
            while processes.is_alive(self.current.process):
                assert time.monotonic() < deadline, "the server does not end"
                time.sleep(0.1)
            self.current = self._start()
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
        words = [replaced.get(word, word) for word in self._command if not word.startswith("-Dblogdata.home=")]
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

    def serve(self, deployment: Deployment) -> None:
        """Have a deployment use the server, also one that boots yet."""
        state = deployment.settings.service_folder("spark") / "server.json"
        write_atomically(state, json.dumps(self.current.state).encode(), mode=0o600)

    def kill(self, deployment: Deployment) -> None:
        """Kill the server with -9; the spare takes its place."""
        kill(self.current.process)
        self.current = self._spare or self._start()
        self._spare = None
        self.serve(deployment)
        self._prepare()

    def stop(self) -> None:
        """End them all."""
        for server in (self.current, self._spare):
            if server is not None:
                processes.stop(server.process)
        for scratch in self._folder.glob("scratch-*"):
            shutil.rmtree(scratch, ignore_errors=True)
