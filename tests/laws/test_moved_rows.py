"""Laws of loads: cut off, run twice, two at once, in any order, while the source changes.

Each law is stated once and holds for each load; what readers find is compared with the source.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from laws.movers import Mover, Places
from laws.movers_of_loads import ByWindows, ChangedUsers, DevicesTable, LegacyVisits, ProviderVisits
from lineage.expected_ads import Row
from lineage.worker import Worker

MOVERS = (DevicesTable, LegacyVisits, ChangedUsers, ProviderVisits)
MOMENTS = 8
CHANGES = ("replace", "rename", "symlink", "unlink", "mkdir", "utime")
"""What changes names and times of files."""

pytestmark = pytest.mark.matrix(8)
every_mover = pytest.mark.parametrize("kind", MOVERS, ids=lambda kind: kind.name)


@dataclass(frozen=True, kw_only=True)
class Stepped:
    """The work of a mover that is stopped before one of its changes of files; otherwise it counts them.

    Args:
        folder: Folder of its output.
        mover: The mover.
        at: Number of the change before which it is stopped; None: none.
        killed: Whether it is killed; otherwise it waits for a file `goes_on`.
    """

    folder: str
    mover: Mover
    at: int | None = None
    killed: bool = True

    def do(self) -> None:
        """Do the work with counted changes."""
        folder, made = Path(self.folder), 0

        def counted(change: Callable[..., Any]) -> Callable[..., Any]:
            def changed(*given: Any, **options: Any) -> Any:
                nonlocal made
                if made == self.at:
                    self._stop(folder)
                made += 1
                return change(*given, **options)

            return changed

        for name in CHANGES:
            setattr(os, name, counted(getattr(os, name)))
        try:
            self.mover.work()
        finally:
            (folder / "changes").write_text(str(made))

    def _stop(self, folder: Path) -> None:
        if self.killed:
            os.kill(os.getpid(), signal.SIGKILL)
        (folder / "held").write_text("")
        while not (folder / "goes_on").exists():
            time.sleep(0.002)


class Run:
    """A mover whose source has changed since its rows were moved; runs it in processes of its own."""

    def __init__(self, mover: Mover, folder: Path) -> None:
        self.mover, self._folder, self._runs = mover, folder, 0

    def start(self, **how: Any) -> Worker:
        """Start the mover."""
        self._runs += 1
        mover = how.pop("mover", self.mover)
        return Worker(Stepped(folder=str(self._folder / str(self._runs)), mover=mover, **how))

    def whole(self, mover: Mover | None = None) -> int:
        """Run the mover to its end, and return how many changes of files it made."""
        worker = self.start(mover=mover or self.mover)
        worker.wait()
        return int((worker.folder / "changes").read_text())

    def files(self) -> dict[Path, tuple[int, int]]:
        """Return when each file was last changed, and its size; locks and flags have none."""
        found = {path: path.stat() for path in self.mover.folder.rglob("*") if path.is_file()}
        return {path: (state.st_mtime_ns, state.st_size) for path, state in found.items() if state.st_size}

    def assert_done(self) -> None:
        """Readers find every row of the source once, and nothing else; another run changes nothing."""
        assert self.mover.found() == self.mover.wanted()
        assert self.mover.problems() == []
        before = self.files()
        self.whole()
        assert self.files() == before


def mixed(found: Counter[Row], before: Counter[Row], wanted: Counter[Row]) -> list[str]:
    """List the parts that readers find neither as they were before nor as they are in the source."""
    seen, was, becomes = map(_by_part, (found, before, wanted))
    return sorted(part for part in {*seen, *was, *becomes} if seen.get(part) not in (was.get(part), becomes.get(part)))


def _by_part(rows: Counter[Row]) -> dict[str, Counter[Row]]:
    found: dict[str, Counter[Row]] = {}
    for row, times in rows.items():
        found.setdefault(row[0], Counter())[row] = times
    return found


@pytest.fixture
def new(kind: type[Mover], request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """A mover that has moved nothing yet."""
    places = Places(
        folder=tmp_path / "mover",
        database=lambda: request.getfixturevalue("database"),
    )
    made = Run(kind.made(places), tmp_path / "runs")
    made.mover.change(random.Random(1))
    return made


@pytest.fixture
def run(new: Run) -> Run:
    """A mover that has moved its first rows."""
    new.whole()
    assert new.mover.found() == new.mover.wanted() != {}
    return new


@pytest.mark.parametrize("moment", range(MOMENTS))
@every_mover
def test_cut_off_and_run_again_is_run_once(new: Run, moment: int) -> None:
    if moment % 2:
        new.whole()
        new.mover.change(random.Random(2))
    before, wanted, killed = new.mover.found(), new.mover.wanted(), 0
    for at in range(moment, 1000, MOMENTS):
        worker = new.start(at=at)
        worker.join()
        assert mixed(new.mover.found(), before, wanted) == []
        if (worker.folder / "changes").exists():
            break
        killed += 1
    assert killed or moment
    new.whole()
    new.assert_done()


@every_mover
def test_two_at_once_move_each_row_once(run: Run) -> None:
    run.mover.change(random.Random(2))
    both = [run.start(), run.start()]
    for each in both:
        each.wait()
    run.assert_done()


@pytest.mark.parametrize("moment", range(4))
@every_mover
def test_what_changes_meanwhile_comes_with_the_next_run(run: Run, moment: int) -> None:
    """A run that has begun moves one state of the source, or is refused."""
    before = run.mover.found()
    run.mover.change(random.Random(2))
    then = run.mover.wanted()
    slow = run.start(at=moment, killed=False)
    while slow.working and not (slow.folder / "held").exists():
        time.sleep(0.002)
    run.mover.change(random.Random(3))
    (slow.folder / "goes_on").touch()
    slow.join()
    found, now = run.mover.found(), run.mover.wanted()
    assert mixed(found, before, now) == [] or mixed(found, then, now) == []
    run.whole()
    run.assert_done()


@pytest.mark.parametrize("kind", [kind for kind in MOVERS if issubclass(kind, ByWindows)], ids=lambda kind: kind.name)
def test_windows_in_any_order_give_the_same_rows(run: Run) -> None:
    assert isinstance(run.mover, ByWindows)
    first, *others = run.mover.windows
    for number, order in enumerate(((*others[::-1], first), (*others, first))):
        run.mover.change(random.Random(number))
        for window in order:
            run.whole(replace(run.mover, windows=(window,)))
        assert run.mover.found() == run.mover.wanted(), order
    run.assert_done()
