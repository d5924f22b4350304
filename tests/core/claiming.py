"""A pipeline that claims late partitions and integrates them: `python claiming.py HOME FOLDER DIES`."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import dagster as dg

from assets import plan
from blogdata.pipeline import Pipeline
from blogdata.progress import Outcome
from orchestration.replay_planner import ASKED, Stage, Wanted
from services import config

DATASET = "silver.visits"
KEYS = [f"2026-01-{5 + hour // 24:02d}T{hour % 24:02d}" for hour in range(50)]
AT_ONCE = 5


class Integrating(Pipeline):
    """The platform's own loop; what is stale is what has no file yet, and the work is a line in that file.

    Args:
        home: Of the deployment.
        folder: Of the files.
        dies: How many partitions it integrates before it dies, like a process without memory; 0: it lives.
    """

    def __init__(self, home: Path, folder: Path, dies: int) -> None:
        super().__init__(config.load({"BLOGDATA_HOME": str(home)}), quiet=True)
        self._folder, self._dies = folder, dies

    def work(self) -> None:
        """Claim and integrate until nothing is left."""
        meet(self._folder, "begun")
        outcome = Outcome()
        with dg.DagsterInstance.ephemeral() as instance:
            self._each_once(instance, plan.stage_of(DATASET), [DATASET], outcome)
        assert outcome.ok

    def _stale(self, stage: Stage, chosen: Sequence[str], within: Collection[str] | None = None) -> Wanted:
        left = [key for key in KEYS if not (self._folder / key).exists()]
        if within is None:
            # Late rows come a few partitions at a time: whoever looked first would claim all.
            left = random.sample(left, min(AT_ONCE, len(left)))
        return {dataset: {key: ASKED for key in left if within is None or key in within} for dataset in chosen}

    def _all(self, instance: dg.DagsterInstance, stage: Stage, wanted: Wanted, outcome: Outcome) -> None:
        meet(self._folder, "claimed")
        for number, key in enumerate(wanted[DATASET]):
            if number == self._dies > 0:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(random.uniform(0, 0.01))
            with (self._folder / key).open("a", encoding="utf-8") as done:
                done.write(f"{os.getpid()}\n")


def meet(folder: Path, where: str, processes: int = 3) -> None:
    """Wait for the others: whoever is faster would do it all."""
    (folder.parent / f"{where}-{os.getpid()}").touch()
    while len(list(folder.parent.glob(f"{where}-*"))) < processes:
        time.sleep(0.01)


if __name__ == "__main__":
    Integrating(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])).work()
