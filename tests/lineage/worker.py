"""A run in a process of its own, as every run is: to be held, killed, or to compete with another one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from lineage.deployment import Deployment, module
from lineage.phases import PATIENCE_SECONDS, Hold
from services import config

TESTS = Path(__file__).parent.parent


def start(
    deployment: Deployment, folder: Path, dataset: str = "", phase: str = "", day: str = "", *, patient: bool = True
) -> subprocess.Popen[bytes]:
    """Start a run.

    Args:
        deployment: Where.
        folder: Folder of its prepared hold, or any other one; its output goes there.
        dataset: What is held; with a day it is also all that runs. Empty holds nothing.
        phase: Where it is held.
        day: What runs again; empty runs whatever is new.
        patient: Whether a step that met a fault that may pass is retried.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    given = [str(deployment.settings.home), str(folder), dataset, phase, day, "3" if patient else "0"]
    with (folder / "worker.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "lineage.worker", *given], env=environment, stdout=log, stderr=log
        )


def problems(process: subprocess.Popen[bytes], folder: Path) -> list[str]:
    """Wait for the end of a run that nobody kills, and give what went wrong in it."""
    assert process.wait(PATIENCE_SECONDS) == 0, (folder / "worker.log").read_text()
    found: list[str] = json.loads((folder / "problems.json").read_text())
    return found


def main(arguments: Sequence[str]) -> None:
    """Run, and be held."""
    home, folder, dataset, phase, day, retries = arguments
    deployment = Deployment(settings=config.load(overrides={"BLOGDATA_HOME": home}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module("orchestration.dataset"), "MAX_RETRIES", int(retries))
        Hold(Path(folder), dataset, phase).install(patch)
        outcome = deployment.run(select=[dataset] if dataset and day else (), hours=(day, day) if day else None)
    (Path(folder) / "problems.json").write_text(json.dumps(outcome.problems))


if __name__ == "__main__":
    main(sys.argv[1:])
