"""A process that claims late partitions one after another and integrates them: `python claiming.py LAKE OWNER DIES`."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from orchestration import owners
from patterns.core.claims import Claims
from patterns.core.lake import Lake

DATASET = "silver.visits"
KEYS = [f"2026-01-{5 + hour // 24:02d}T{hour % 24:02d}" for hour in range(50)]
AT_ONCE = 5


def integrate(folder: Path, key: str, owner: str) -> None:
    """Do the work: a line for each time a partition was integrated."""
    time.sleep(random.uniform(0, 0.01))
    with (folder / key).open("a", encoding="utf-8") as done:
        done.write(f"{owner}\n")


def meet(folder: Path, where: str, processes: int = 2) -> None:
    """Wait for the others: whoever is faster would do it all."""
    (folder.parent / f"{where}-{os.getpid()}").touch()
    while len(list(folder.parent.glob(f"{where}-*"))) < processes:
        time.sleep(0.01)


def work(root: Path, folder: Path, dies: int) -> None:
    """Claim and integrate until nothing is left; or die, like a process without memory, after some of the first."""
    claims = Claims(Lake(root=str(root)), DATASET, alive=owners.alive)
    owner = owners.this_run()
    meet(folder, "begun")
    while left := [key for key in KEYS if not (folder / key).exists()]:
        mine = claims.take(random.sample(left, min(AT_ONCE, len(left))), owner)
        meet(folder, "claimed")
        for number, key in enumerate(mine):
            if number == dies > 0:
                os.kill(os.getpid(), signal.SIGKILL)
            # Whoever held it a moment ago may have done it.
            if not (folder / key).exists():
                integrate(folder, key, owner)
        claims.release(mine, owner)
        if not mine:
            time.sleep(0.05)


if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
