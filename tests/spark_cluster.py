"""A Spark standalone cluster on this machine: a master and workers, each a process of its own.

It runs the platform as a real cluster would, with executors that share nothing with the driver but files, so that code
that only works inside one process fails. For real work on one machine `local[*]` is faster.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from blogdata.operate import processes, spark_launch
from blogdata.operate.config import Settings
from blogdata.operate.processes import ProcessIdentity

_START_SECONDS = 120.0
_MEMORY = "700m"


@contextmanager
def running(settings: Settings, workers: int) -> Iterator[Settings]:
    """Start a cluster; yields settings whose Spark Connect server runs its work on it."""
    folder = settings.service_folder("spark-cluster")
    environment = spark_launch.environment(settings)
    environment |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_DIRS": str(folder / "scratch")}
    environment |= {"SPARK_NO_DAEMONIZE": "1", "SPARK_WORKER_DIR": str(folder / "work")}
    guarded = {"spark.authenticate": "true", "spark.authenticate.secret": secrets.token_hex()}
    guarded["spark.network.crypto.enabled"] = "true"
    properties = folder / "cluster.conf"
    properties.touch(mode=0o600)
    properties.write_text("".join(f"{key} {value}\n" for key, value in guarded.items()))
    port, pages = processes.free_port(), processes.free_port()
    master = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    main = [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(pages)]
    worker = [f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1"]
    worker += ["--memory", _MEMORY, master]
    started: list[ProcessIdentity] = []
    try:
        for number, arguments in enumerate([main, *[worker] * workers]):
            log = folder / f"{number}.log"
            command = spark_launch.command(settings, [*arguments, "--properties-file", str(properties)])
            started.append(processes.start(command, environment=environment, log=log, folder=folder))
            deadline = time.monotonic() + _START_SECONDS
            while (
                "Successfully registered with master" not in log.read_text() if number else processes.port_is_free(port)
            ):
                assert processes.is_alive(started[-1]), log.read_text()
                assert time.monotonic() < deadline, log
                time.sleep(0.1)
        conf = {**dict(settings.spark.conf), **guarded, "spark.executor.memory": _MEMORY}
        yield replace(
            settings, spark=replace(settings.spark, remote=None, master=master, conf=tuple(sorted(conf.items())))
        )
    finally:
        for process in reversed(started):
            processes.stop(process)
