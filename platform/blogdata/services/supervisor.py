"""Several processes that serve one thing together: when one ends by itself, all end, with a reason.

Each is started with :mod:`blogdata.services.ends_with_parent`, so that none outlives this process, however it ends.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

from blogdata.errors import TransientError
from blogdata.services.processes import Detached


class Supervisor:
    """The processes, by what they are called in messages."""

    def __init__(self) -> None:
        self._running: dict[str, Detached] = {}

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a process that ends when its standard input does; its output goes where this process's does."""
        # In a session of its own an interrupt from the terminal reaches it from here only, once.
        self._running[name] = Detached(
            list(command), env=dict(environment), stdin=subprocess.PIPE, start_new_session=True
        )

    def check(self) -> None:
        """Raise TransientError if one of them has ended."""
        for name, process in self._running.items():
            if (code := process.poll()) is not None:
                how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
                raise TransientError(
                    what=f"{name} ended by itself: {how}",
                    where=f"process {process.pid}",
                    next_step="look at its output above, and start again",
                )

    def stop(self, names: Sequence[str], *, seconds: float, kill: bool) -> None:
        """End those of some that run, within seconds together; slower ones are killed, or left to end by themselves."""
        chosen = [self._running.pop(name) for name in names if name in self._running]
        for process in chosen:
            assert process.stdin is not None
            # Nothing was written, so nothing is flushed into the pipe of one that has ended.
            process.stdin.close()
        deadline = time.monotonic() + seconds
        for process in chosen:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=max(0.0, deadline - time.monotonic()))
            if kill and process.poll() is None:
                process.kill()
                process.wait()
