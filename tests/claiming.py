"""A step that claims late partitions and integrates them: `python claiming.py HOME FOLDER DIES`."""

import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from assets.code import code
from blogdata.planning.graph import Task
from blogdata.runs.computation import Done
from blogdata.runs.driver import Driver
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.refresh_request import Request
from quality.contracts import GRAPH

DATASET = "silver.visits"
KEYS = [f"2026-01-{5 + hour // 24:02d}T{hour % 24:02d}" for hour in range(50)]
AT_ONCE = 5


class Integrating(Driver):
    """The platform's own step. A partition without a file is stale; integrating it writes a line into its file."""

    folder: Path
    """Of the files."""
    dies: int
    """How many partitions it integrates before it dies, like a process without memory; 0: it lives."""
    looks = 0

    def _again(self, task: Task) -> set[str]:
        return set()

    def _stale(self, task: Task, *, first: bool) -> dict[str, str]:
        left = [key for key in KEYS if not (self.folder / key).exists()]
        self.looks += 1
        # Late rows come a few partitions at a time; otherwise the first process would claim all.
        return dict.fromkeys(random.sample(left, min(AT_ONCE, len(left))) if self.looks % 2 else left, "no file")

    def _computed(self, task: Task, keys: Sequence[str]) -> Done:
        meet(self.folder, "claimed")
        for number, key in enumerate(keys):
            if number == self.dies > 0:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(random.uniform(0, 0.01))
            with (self.folder / key).open("a", encoding="utf-8") as done:
                done.write(f"{os.getpid()}\n")
        return Done()


def meet(folder: Path, where: str, processes: int = 2) -> None:
    """Wait for the other process, so that the faster one does not do all the work."""
    (folder.parent / f"{where}-{os.getpid()}").touch()
    while len(list(folder.parent.glob(f"{where}-*"))) < processes:
        time.sleep(0.01)


def main(home: Path, folder: Path, dies: int) -> None:
    Integrating.folder, Integrating.dies = folder, dies

    @dg.op(required_resource_keys={"lake", "request"})
    def integrate(context: dg.OpExecutionContext) -> None:
        meet(folder, "begun")
        Integrating.run(code(), GRAPH.task_of(DATASET), context)

    @dg.graph
    def integration() -> None:
        integrate()

    lake = LakeResource(root=str(home / "lake"), landing=str(home / "landing"))
    integration.execute_in_process(resources={"lake": lake, "request": Request()})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
