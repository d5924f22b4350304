"""Holds a publication at its phases, so that a test can look, interfere or kill exactly there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestration import step as steps
from patterns.core.commit import Commit
from patterns.core.events import EventLog
from patterns.quality.audit_write_audit_publish import Target

IN_THE_ENGINE = ("opened", "written", "audited", "committed")
"""Phases of the write on the server; up to `audited` nothing is published."""
RECORDED = "recorded"
"""The step knows of its commit, and has not yet told the event log."""
PHASES = (*IN_THE_ENGINE, RECORDED)
PATIENCE_SECONDS = 400


class Hold:
    """Holds the first publication of a dataset at some phases; whoever publishes it after that is not held."""

    def __init__(self, folder: Path, dataset: str, *phases: str) -> None:
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
        record = EventLog.record

        def target(**values: Any) -> Target:
            held = self._is_first(values["contract"].dataset, "write")
            return Target(**{**values, "probe": str(self._folder) if held else None})

        def recorded(log: EventLog, commit: Commit) -> None:
            if self._is_first(commit.dataset, RECORDED):
                (self._folder / f"{RECORDED}.reached").touch()
                _until(lambda: not (self._folder / f"{RECORDED}.hold").exists(), "nobody let it go on")
            record(log, commit)

        patch.setattr(steps, "Target", target)
        patch.setattr(EventLog, "record", recorded)
        return self

    def reached(self, phase: str, working: Callable[[], bool] = lambda: True) -> None:
        """Wait until the publication is held at a phase, as long as whoever publishes it works."""
        marker = self._folder / f"{phase}.reached"
        _until(lambda: marker.exists() or not working(), f"{self._dataset} was never {phase}")
        assert marker.exists(), f"the run ended before {self._dataset} was {phase}"

    def release(self) -> None:
        """Let it go on to its end."""
        for phase in self._phases:
            self.let_go(phase)

    def let_go(self, phase: str) -> None:
        """Let it go on to the next phase it is held at."""
        (self._folder / f"{phase}.hold").unlink(missing_ok=True)

    def _is_first(self, dataset: str, what: str) -> bool:
        if dataset != self._dataset:
            return False
        try:
            (self._folder / f"{what}.taken").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def _until(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.02)
