"""A run in a separate process, as every run is: to be held, killed, or run concurrently.

The processes are forked from one that has imported everything, so that each costs tenths of a second.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from blogdata.errors import PlatformError
from blogdata.services import config
from lineage import phases
from lineage.deployment import Deployment, module
from lineage.phases import PATIENCE_SECONDS, Hold

PRELOADED = [
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
    "dagster._core.secrets.env_file",
    "dagster._core.storage.noop_compute_log_manager",
    "dagster._core.storage.root",
    "dagster._core.storage.sqlite_storage",
    "upath.implementations.local",
    "watchdog.observers.polling",
]
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(PRELOADED)


class Work(Protocol):
    """What a process does.

    Args:
        folder: Folder of its output.
    """

    @property
    def folder(self) -> str: ...

    def do(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run, or a statement.

    Args:
        home: Home of the deployment.
        folder: Folder of its output and outcome.
        dataset: Dataset to hold; with a day it is also the only one that runs. Empty holds nothing.
        phase: Phase at which it is held.
        day: Day to run again; empty runs stale partitions.
        needed: Run only these datasets and everything upstream; empty: all.
        armed: Folder of holds that are added later; empty: none.
        retries: How often a step is retried after a transient fault.
        statement: SQL to run instead of a run.
    """

    home: str
    folder: str
    dataset: str = ""
    phase: str = ""
    day: str = ""
    needed: tuple[str, ...] = ()
    armed: str = ""
    retries: int = 3
    statement: str = ""

    def do(self) -> None:
        deployment = Deployment(settings=config.load(overrides={"BLOGDATA_HOME": self.home}))
        try:
            (_maintain if self.statement else _run)(deployment, self)
        finally:
            deployment.close()


class Worker:
    """A process that does some work."""

    def __init__(self, job: Work) -> None:
        self.folder = Path(job.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process = _FORKS.Process(target=_work, args=(job, dict(os.environ), sys.executable), daemon=True)
        self._process.start()

    @property
    def working(self) -> bool:
        """Whether it still runs."""
        return self._process.is_alive()

    def kill(self) -> bool:
        """Kill the process with -9 and wait until it is gone; False if it ended by itself before."""
        self._process.kill()
        self._process.join(PATIENCE_SECONDS)
        return self._process.exitcode == -9

    def join(self) -> None:
        """Wait for its end, whatever that is."""
        self._process.join(PATIENCE_SECONDS)

    def wait(self) -> None:
        """Wait for its end, which must be successful."""
        self.join()
        assert self._process.exitcode == 0, f"{self._process.exitcode}: {self.said}"

    @property
    def said(self) -> str:
        """Its output."""
        return (self.folder / "worker.log").read_text(errors="replace")[-5000:]

    def problems(self) -> list[str]:
        """Wait for the end of a run that is not killed; return its problems."""
        self.wait()
        return self.outcome()["problems"]

    def outcome(self) -> dict[str, list[str]]:
        """Read the outcome of an ended run: `problems`, and the published datasets in order."""
        found: dict[str, list[str]] = json.loads((self.folder / "outcome.json").read_text())
        return found


def start(
    deployment: Deployment,
    folder: Path,
    dataset: str = "",
    phase: str = "",
    day: str = "",
    *,
    needed: tuple[str, ...] = (),
    patient: bool = True,
) -> Worker:
    """Start a run.

    Args:
        deployment: The deployment.
        folder: Folder of its prepared hold, or any other folder, for its output.
        dataset: Dataset to hold; with a day it is also the only one that runs. Empty holds nothing.
        phase: Phase at which it is held.
        day: Day to run again; empty runs stale partitions.
        needed: Run only these datasets and everything upstream; empty: all.
        patient: Whether a step is retried after a transient fault.
    """
    job = Job(
        home=str(deployment.settings.home),
        folder=str(folder),
        dataset=dataset,
        phase=phase,
        day=day,
        needed=needed,
        retries=3 if patient else 0,
    )
    return Worker(job)


def _work(job: Work, environment: Mapping[str, str], executable: str) -> None:
    # The forked process inherits the environment of the first request, which may name another Python.
    os.environ.clear()
    os.environ.update(environment)
    sys.executable = executable
    log = os.open(Path(job.folder) / "worker.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        job.do()
    except PlatformError as error:
        print(f"{error.what}\n{error.where}", file=sys.stderr)  # noqa: T201 - into its log
        raise


def _run(deployment: Deployment, job: Job) -> None:
    folder = Path(job.folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module("blogdata.orchestration.refresh"), "MAX_RETRIES", job.retries)
        holds: Callable[[str], Hold | None] = phases.armed(Path(job.armed))
        if job.armed:
            phases.watch(patch, holds)
        else:
            Hold(folder, job.dataset, job.phase).install(patch)
        hours = (job.day, job.day) if job.day else None
        selected = [job.dataset] if job.dataset and job.day else ()
        outcome = deployment.run(select=selected, hours=hours, for_=job.needed)
    order = [step["dataset"] for step in outcome.steps]
    found = {"problems": outcome.problems, "order": order, "runs": [str(outcome.runs)]}
    (folder / "outcome.json").write_text(json.dumps(found))


def _maintain(deployment: Deployment, job: Job) -> None:
    with deployment.session() as spark:
        # For tables as small as these, interpreting code is faster than compiling it.
        spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        (Path(job.folder) / "begun").touch()
        spark.sql(job.statement).collect()
        (Path(job.folder) / "done").touch()
