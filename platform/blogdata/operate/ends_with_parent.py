"""Runs a command of this environment that ends with the process that started it, also when that is killed.

A process learns of the end of its parent by the pipe to its standard input: only the parent holds the other end, and
the system closes it. The parent ends a child the same way, so that each child is interrupted exactly once.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import tempfile
import threading
from pathlib import Path


def end_with_parent() -> None:
    """Interrupt this process when the pipe to its standard input is closed."""
    threading.Thread(target=_interrupt_at_end_of_input, daemon=True).start()


def _interrupt_at_end_of_input() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGINT)


def main() -> None:
    """Run a console script: arguments are a folder for temporary files (empty: the usual one), its name, its own."""
    end_with_parent()
    _, folder, name, *arguments = sys.argv
    # A variable of the environment would reach Spark's server, which stays.
    tempfile.tempdir = folder or None
    script = Path(sys.executable).with_name(name)
    sys.argv = [str(script), *arguments]
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
