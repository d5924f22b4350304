"""A Spark standalone cluster on this machine: a master and workers, each a process of its own.

It runs the platform as a real cluster would, with executors that share nothing with the driver but files, so that code
that only works inside one process fails. For real work on one machine `local[*]` is faster.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from blogdata.errors import PlatformError
from blogdata.files import locked, write_atomically
from blogdata.operate import processes, spark_launch
from blogdata.operate.config import Settings
from blogdata.operate.processes import ProcessIdentity

_START_SECONDS = 120.0


class SparkClusterFailed(PlatformError):
    """A process of the cluster ended, or was not ready in time, during the start."""


@dataclass(frozen=True, kw_only=True)
class SparkCluster:
    """A running cluster."""

    master: str
    processes: tuple[ProcessIdentity, ...]
    executor_memory: str
    secret: str

    def settings(self, settings: Settings) -> Settings:
        """Return settings whose Spark Connect server runs its work on this cluster."""
        conf = {**dict(settings.spark.conf), **_guarded(self.secret), "spark.executor.memory": self.executor_memory}
        spark = replace(settings.spark, remote=None, master=self.master, conf=tuple(sorted(conf.items())))
        return replace(settings, spark=spark)


def start(settings: Settings, *, workers: int = 2, executor_memory: str = "700m") -> SparkCluster:
    """Start a cluster, after stopping one that is already running here."""
    stop(settings)
    folder = settings.service_folder("spark-cluster")
    environment = spark_launch.environment(settings)
    environment |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_DIRS": str(folder / "scratch")}
    environment |= {"SPARK_NO_DAEMONIZE": "1", "SPARK_WORKER_DIR": str(folder / "work")}
    secret, properties = secrets.token_hex(), folder / "cluster.conf"
    write_atomically(properties, "".join(f"{key} {value}\n" for key, value in _guarded(secret).items()).encode())
    port, pages = processes.free_port(), processes.free_port()
    address = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    main = [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(pages)]
    worker = [f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1"]
    worker += ["--memory", executor_memory, address]
    started: list[ProcessIdentity] = []
    with locked(folder / "lock"):
        try:
            for number, arguments in enumerate([main, *[worker] * workers]):
                log = folder / ("master.log" if number == 0 else f"worker-{number}.log")
                command = spark_launch.command(settings, [*arguments, "--properties-file", str(properties)])
                started.append(processes.start(command, environment=environment, log=log, folder=folder))
                _write(settings, started)
                _wait(started[-1], log, port if number == 0 else None)
        except BaseException:
            for process in reversed(started):
                processes.stop(process)
            raise
    return SparkCluster(master=address, processes=tuple(started), executor_memory=executor_memory, secret=secret)


def stop(settings: Settings) -> int:
    """Stop the deployment's cluster."""
    state = _state_file(settings)
    if not state.is_file():
        return 0
    known = [ProcessIdentity(**entry) for entry in json.loads(state.read_text(encoding="utf-8"))]
    stopped = sum(processes.stop(process) for process in reversed(known))
    state.unlink(missing_ok=True)
    return stopped


def _guarded(secret: str) -> dict[str, str]:
    return {"spark.authenticate": "true", "spark.authenticate.secret": secret, "spark.network.crypto.enabled": "true"}


def _wait(process: ProcessIdentity, log: Path, port: int | None) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while processes.is_alive(process) and time.monotonic() < deadline:
        if port is not None and not processes.port_is_free(port):
            return
        if port is None and "Successfully registered with master" in log.read_text(encoding="utf-8"):
            return
        time.sleep(0.1)
    raise SparkClusterFailed(
        what=f"A process of the Spark cluster did not come up within {_START_SECONDS:g} s",
        where=str(log),
        next_step="Read the log; run `blogdata doctor`",
    )


def _write(settings: Settings, started: list[ProcessIdentity]) -> None:
    content = json.dumps([asdict(process) for process in started]).encode()
    write_atomically(_state_file(settings), content)


def _state_file(settings: Settings) -> Path:
    return settings.service_folder("spark-cluster") / "cluster.json"
