"""Holds a publication at its phases, so that a test can look, interfere or kill exactly there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blogdata.evidence.events import EventLog
from blogdata.lake.commit import Commit
from blogdata.orchestration import step as steps
from blogdata.publish.target import Target

IN_THE_ENGINE = ("opened", "written", "audited", "committed")
"""Phases of the write on the server; up to `audited` nothing is published."""
RECORDED = "recorded"
"""The step knows of its commit, and has not yet told the event log."""
PHASES = (*IN_THE_ENGINE, RECORDED)
UNPUBLISHED, PUBLISHED = PHASES[:3], PHASES[3:]
PATIENCE_SECONDS = 900


class Hold:
    """Holds the first publication of a dataset at some phases; whoever publishes it after that is not held.

    Args:
        folder: What both processes look at.
        dataset: Whose publication.
        phases: Where it is held.
        again: Whether a publication that was cut off before the first phase lets the next one be held.
    """

    def __init__(self, folder: Path, dataset: str, *phases: str, again: bool = False) -> None:
        self._again = again
        self._folder = folder
        self._dataset = dataset
        self._phases = phases

    def prepare(self) -> Hold:
        """Lay out the folder both processes look at."""
        self._folder.mkdir(parents=True)
        for phase in self._phases:
            (self._folder / f"{phase}.hold").touch()
        return self

    def install(self, patch: pytest.MonkeyPatch) -> Hold:
        """Have the publications of this process look whether they are held."""
        watch(patch, lambda dataset: self if dataset == self._dataset else None)
        return self

    def reached(self, phase: str, working: Callable[[], bool] = lambda: True) -> None:
        """Wait until the publication is held at a phase, as long as whoever publishes it works."""
        assert self.comes_to(phase, working), f"the run ended before {self._dataset} was {phase}"

    def comes_to(self, phase: str, working: Callable[[], bool]) -> bool:
        """Wait until the publication is at a phase; False when whoever publishes it ended before."""
        _until(lambda: self.was(phase) or not working(), f"{self._dataset} was never {phase}")
        return self.was(phase)

    def was(self, phase: str) -> bool:
        """Tell whether the publication has been at a phase."""
        return (self._folder / f"{phase}.reached").exists()

    @property
    def touched(self) -> bool:
        """Whether the publication has come anywhere."""
        return any(self._folder.glob("*.reached"))

    def release(self) -> None:
        """Let it go on to its end."""
        for phase in self._phases:
            self.let_go(phase)

    def end(self) -> None:
        """Have a write that is not published yet fail where it is held, or where it comes next."""
        for phase in UNPUBLISHED:
            (self._folder / f"{phase}.fail").touch()
        self.release()

    def let_go(self, phase: str) -> None:
        """Let it go on to the next phase it is held at."""
        (self._folder / f"{phase}.hold").unlink(missing_ok=True)

    def probe(self) -> str | None:
        """Give the folder the engine looks at, to the first who writes; None to all others."""
        if self._again:
            # The engine holds nobody at a phase that somebody has reached.
            return str(self._folder)
        return str(self._folder) if self._is_first("write") else None

    def recorded(self) -> None:
        """Wait, the first time, before the event log is told."""
        if self._is_first(RECORDED):
            (self._folder / f"{RECORDED}.reached").touch()
            _until(lambda: not (self._folder / f"{RECORDED}.hold").exists(), "nobody let it go on")

    def _is_first(self, what: str) -> bool:
        try:
            (self._folder / f"{what}.taken").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def watch(patch: pytest.MonkeyPatch, holds: Callable[[str], Hold | None]) -> None:
    """Have the publications of this process look whether they are held.

    Args:
        patch: What is undone at the end.
        holds: Dataset to its hold, if there is one when it is published.
    """
    record = EventLog.record

    def target(**values: Any) -> Target:
        hold = holds(values["contract"].dataset)
        return Target(**{**values, "probe": hold.probe() if hold else None})

    def recorded(log: EventLog, commit: Commit) -> None:
        hold = holds(commit.dataset)
        if hold:
            hold.recorded()
        record(log, commit)

    patch.setattr(steps, "Target", target)
    patch.setattr(EventLog, "record", recorded)


def armed(folder: Path) -> Callable[[str], Hold | None]:
    """Give the holds that somebody lays out in a folder while a run is under way: for a dataset, a link to one."""
    return lambda dataset: (
        Hold((folder / dataset).resolve(), dataset, again=True) if (folder / dataset).is_symlink() else None
    )


def _until(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.005)
