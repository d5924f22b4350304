"""A run in a process of its own, to be killed: `python -m lineage.worker HOME HOLD DATASET PHASE [SPAN]`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from lineage.deployment import Deployment
from lineage.phases import Hold
from services import config

TESTS = Path(__file__).parent.parent


def start(deployment: Deployment, hold: Path, dataset: str, phase: str, span: str = "") -> subprocess.Popen[bytes]:
    """Start a run that is held at a phase of the publication of a dataset.

    Args:
        deployment: Where.
        hold: Folder of the prepared hold.
        dataset: What is held; with a span it is also all that runs.
        phase: Where it is held.
        span: Day to run again; empty runs whatever is new.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    command = [sys.executable, "-m", "lineage.worker", str(deployment.settings.home), str(hold), dataset, phase, span]
    with (hold / "worker.log").open("wb") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


def main(arguments: Sequence[str]) -> int:
    """Run, and be held."""
    home, folder, dataset, phase, span = arguments
    deployment = Deployment(settings=config.load(overrides={"BLOGDATA_HOME": home}))
    with pytest.MonkeyPatch.context() as patch:
        Hold(Path(folder), dataset, phase).install(patch)
        outcome = deployment.run(select=[dataset], hours=(span, span)) if span else deployment.run()
    return 0 if outcome.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
