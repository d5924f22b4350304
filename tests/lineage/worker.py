"""A run in a separate process, as every run is: to be held, killed, or run concurrently.

The processes are forked from one that has imported everything, so that each costs tenths of a second.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from blogdata.contract.publication import Commit
from blogdata.ledger.events import EventLog
from blogdata.operate import config, spark_attached
from blogdata.runs import step as steps
from blogdata.table.target import Target
from laws.stepping import PATIENCE_SECONDS, Probe
from lineage.deployment import Deployment

RECORDED = "recorded"
"""The phase at which a step knows of its commit, and has not yet told the event log."""
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "definitions",
        "blogdata.cli.pipeline",
        "pyspark.sql.connect.session",
        "pyspark.sql.connect.window",
        "pytest",
        "lineage.worker",
        # Modules that Dagster imports when its storage is opened and a run begins.
        "dagster._core.definitions.repository_definition.repository_data_builder",
        "dagster._core.executor.in_process",
        "dagster._core.instance.factory",
        "dagster._core.storage.noop_compute_log_manager",
        "dagster._core.storage.root",
        "dagster._core.storage.sqlite_storage",
    ]
)


class Forked:
    """Work on a deployment in a process of its own; its log is in a folder."""

    def __init__(self, deployment: Deployment, folder: Path, work: Callable[[Deployment], Any]) -> None:
        self._folder = folder
        given = (deployment.settings.home, folder, work, dict(os.environ), sys.executable)
        self._process = _FORKS.Process(target=_work, args=given, daemon=True)
        self._process.start()

    def is_working(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        """Kill the process with -9 and wait until it is gone."""
        self._process.kill()
        self.ended()
        assert self._process.exitcode == -9

    def ended(self) -> None:
        """Wait for its end, successful or not: a killed server is an error for it."""
        self._process.join(PATIENCE_SECONDS)

    def result(self) -> Any:
        self.ended()
        assert self._process.exitcode == 0, (self._folder / "worker.log").read_text(errors="replace")[-5000:]
        return json.loads((self._folder / "result.json").read_text())


class Worker(Forked):
    """A run of some datasets and everything upstream; at a phase of one dataset it obeys the probe."""

    def __init__(self, deployment: Deployment, probe: Probe, needed: tuple[str, ...], dataset: str = "") -> None:
        super().__init__(deployment, probe.folder, partial(_run, probe.folder, needed, dataset))

    def problems(self) -> list[str]:
        found: list[str] = self.result()
        return found


def obey(patch: pytest.MonkeyPatch, probe: Path, dataset: str) -> None:
    """Make publications of a dataset by this process wait or fail where the probe says so."""
    record = EventLog.record

    def target(**values: Any) -> Target:
        return Target(**{**values, "probe": str(probe) if values["contract"].dataset == dataset else None})

    def recorded(log: EventLog, commit: Commit) -> None:
        if commit.dataset == dataset:
            (probe / f"{RECORDED}.reached").touch()
            while (probe / f"{RECORDED}.hold").exists():
                time.sleep(0.005)
        record(log, commit)

    patch.setattr(steps, "Target", target)
    patch.setattr(EventLog, "record", recorded)


def _run(folder: Path, needed: tuple[str, ...], dataset: str, deployment: Deployment) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        obey(patch, folder, dataset)
        return deployment.run(for_=needed).problems


def _work(
    home: Path, folder: Path, work: Callable[[Deployment], Any], environment: Mapping[str, str], executable: str
) -> None:
    # The forked process inherits the environment of the first request, which may name another Python.
    os.environ.clear()
    os.environ.update(environment)
    sys.executable = executable
    log = os.open(folder / "worker.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    deployment = Deployment(settings=config.load(overrides={"BLOGDATA_HOME": str(home)}))
    try:
        result = work(deployment)
    finally:
        spark_attached.drop(deployment.settings)
    (folder / "result.json").write_text(json.dumps(result))
