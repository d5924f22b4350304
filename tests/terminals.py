"""A pseudo-terminal for a command, and the screen that a person would see on it."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyte

LINES = 400
"""Height of the screen: nothing scrolls away."""


class Terminal:
    """A command on a terminal of some columns.

    Args:
        command: The executable and its arguments.
        columns: Width of the terminal.
        environment: Variables that are added to this process's own.
    """

    def __init__(self, command: Sequence[str], *, columns: int, environment: Mapping[str, str]) -> None:
        self._own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
        self.screen = pyte.Screen(columns, LINES)
        self._stream = pyte.ByteStream(self.screen)
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "TERM": "xterm-256color", **environment},
            # There is nobody to answer a question.
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def changes(self) -> Iterator[list[str]]:
        """Yield the lines on the screen after each output, until the command has ended."""
        # Reading fails once the last process has closed the other end.
        while chunk := _read(self._own):
            self._stream.feed(chunk)
            yield self.lines

    @property
    def lines(self) -> list[str]:
        """List the lines on the screen, down to the last non-empty line."""
        shown = [line.rstrip() for line in self.screen.display]
        while shown and not shown[-1]:
            shown.pop()
        return shown

    def close(self) -> None:
        """Wait for the end of the command."""
        os.close(self._own)
        self.process.wait(timeout=60)


def _read(number: int) -> bytes:
    try:
        return os.read(number, 65_536)
    except OSError:
        return b""


@contextmanager
def on_terminal(command: Sequence[str], *, columns: int, **environment: str) -> Iterator[Terminal]:
    """Run a command on a terminal."""
    terminal = Terminal(command, columns=columns, environment=environment)
    try:
        yield terminal
    finally:
        terminal.close()


def last_screen(command: Sequence[str], *, columns: int, **environment: str) -> list[str]:
    """Run a command on a terminal to its end; return the lines left on the screen."""
    with on_terminal(command, columns=columns, **environment) as terminal:
        for _ in terminal.changes():
            pass
        return terminal.lines
