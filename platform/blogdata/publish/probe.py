"""Lets a test step a write through its phases, which are moments between what it does outside of this process."""

from __future__ import annotations

import time
from pathlib import Path


class Probe:
    """A folder: at each phase a file `<phase>.reached` appears, `<phase>.hold` is waited for, `<phase>.fail` fails."""

    def __init__(self, folder: str | None, prefix: str = "") -> None:
        self._folder, self._prefix = folder, prefix

    def reached(self, name: str) -> None:
        if self._folder is None:
            return
        phase, folder = f"{self._prefix}{name}", Path(self._folder)
        reached = folder / f"{phase}.reached"
        if reached.exists():
            # Only the first attempt of a repeated write is stepped through.
            return
        reached.touch()
        while (folder / f"{phase}.hold").exists():
            time.sleep(0.02)
        if (folder / f"{phase}.fail").exists():
            raise RuntimeError(f"the write was ended at {phase}")
