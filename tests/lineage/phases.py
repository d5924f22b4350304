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
    """Holds the first publication of a dataset at some phases; later publications are not held.

    Args:
        folder: Folder shared by both processes.
        dataset: The published dataset.
        phases: Phases at which it is held.
        again: Whether the next publication is held if this one was interrupted before the first phase.
    """

    def __init__(self, folder: Path, dataset: str, *phases: str, again: bool = False) -> None:
        self._again = again
        self._folder = folder
        self._dataset = dataset
        self._phases = phases

    def prepare(self) -> Hold:
        """Create the folder shared by both processes."""
        self._folder.mkdir(parents=True)
        for phase in self._phases:
            (self._folder / f"{phase}.hold").touch()
        return self

    def install(self, patch: pytest.MonkeyPatch) -> Hold:
        """Make the publications of this process check for the hold."""
        watch(patch, lambda dataset: self if dataset == self._dataset else None)
        return self

    def reached(self, phase: str, working: Callable[[], bool] = lambda: True) -> None:
        """Wait until the publication is held at a phase, while its process works."""
        assert self.comes_to(phase, working), f"the run ended before {self._dataset} was {phase}"

    def comes_to(self, phase: str, working: Callable[[], bool]) -> bool:
        """Wait until the publication is at a phase; False if its process ended before."""
        _until(lambda: self.was(phase) or not working(), f"{self._dataset} was never {phase}")
        return self.was(phase)

    def was(self, phase: str) -> bool:
        """Tell whether the publication has been at a phase."""
        return (self._folder / f"{phase}.reached").exists()

    @property
    def touched(self) -> bool:
        """Whether the publication has reached any phase."""
        return any(self._folder.glob("*.reached"))

    def release(self) -> None:
        """Let the publication continue to its end."""
        for phase in self._phases:
            self.let_go(phase)

    def end(self) -> None:
        """Make an unpublished write fail where it is held, or at its next phase."""
        for phase in UNPUBLISHED:
            (self._folder / f"{phase}.fail").touch()
        self.release()

    def let_go(self, phase: str) -> None:
        """Let the publication continue to the next phase at which it is held."""
        (self._folder / f"{phase}.hold").unlink(missing_ok=True)

    def probe(self) -> str | None:
        """Return the probe folder to the first writer; None to all others."""
        if self._again:
            # The engine holds nobody at a phase that was already reached.
            return str(self._folder)
        return str(self._folder) if self._is_first("write") else None

    def recorded(self) -> None:
        """Wait, the first time, before the event log is written."""
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
    """Make the publications of this process check for their holds.

    Args:
        patch: Patches that are undone at the end.
        holds: Dataset to its hold, looked up at publication.
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
    """Find the holds that a test creates in a folder during a run: for a dataset, a link to one."""
    return lambda dataset: (
        Hold((folder / dataset).resolve(), dataset, again=True) if (folder / dataset).is_symlink() else None
    )


def _until(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.005)
