"""Steps a write through its phases from another thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_SECONDS = 600


class Probe:
    """A folder through which a test holds or ends a write at a phase."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def hold(self, phase: str) -> None:
        (self.folder / f"{phase}.hold").touch()

    def end(self, phase: str) -> None:
        (self.folder / f"{phase}.fail").touch()

    def reached(self, phase: str, working: Callable[[], bool] = lambda: True) -> bool:
        """Wait until the write is at a phase; False if it ended before."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (self.folder / f"{phase}.reached").exists():
            assert time.monotonic() < deadline, f"the write never reached '{phase}'"
            if not working():
                return (self.folder / f"{phase}.reached").exists()
            time.sleep(0.02)
        return True

    def release(self) -> None:
        for held in self.folder.glob("*.hold"):
            held.unlink()


class Held:
    """A write in its own thread, held at a phase while the context lasts."""

    def __init__(self, write: Callable[[], object], probe: Probe, phase: str) -> None:
        self._write, self._probe, self._phase = write, probe, phase
        self._thread = threading.Thread(target=self._run)
        self.error: BaseException | None = None

    def __enter__(self) -> Held:
        self._probe.hold(self._phase)
        self._thread.start()
        if not self._probe.reached(self._phase, self._thread.is_alive):
            self._thread.join()
            raise AssertionError(f"the write ended before it was {self._phase}") from self.error
        return self

    def __exit__(self, *raised: object) -> None:
        self._probe.release()
        self._thread.join(timeout=PATIENCE_SECONDS)

    def _run(self) -> None:
        try:
            self._write()
        except BaseException as error:  # noqa: BLE001 - kept for the test
            self.error = error
