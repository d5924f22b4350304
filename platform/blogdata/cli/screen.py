"""What a command prints while Dagster runs in its process: whole lines, and on a terminal a status below them."""

from __future__ import annotations

import contextlib
import io
import os
import re
import selectors
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TextIO

from blogdata.cli.output import OwnTerminal, Terminal, console, status_line
from blogdata.errors import shown

if TYPE_CHECKING:
    from rich.progress import Progress

_CHUNK = 65_536
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Screen:
    """Prints past Dagster's executor, which puts standard output and error into a file during steps.

    The executor echoes that file a second later, and not its end. On a terminal all that anything else prints to the
    two is taken in meanwhile and printed as whole lines, above the status; a child process's lines, too.
    """

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._console: Terminal = console
        self._bar: Progress | None = None

    @contextmanager
    def opened(self) -> Iterator[Screen]:
        """Print through the standard output of this moment, until the end of the block."""
        with ExitStack() as held:
            if self._shown and (own := _copy(sys.stdout)) is not None:
                self._console = OwnTerminal(file=held.enter_context(own))
                held.callback(setattr, self, "_console", console)
                if self._console.is_terminal:
                    self._bar = held.enter_context(status_line(self._console))
                    held.callback(setattr, self, "_bar", None)
                    held.enter_context(_taken_in(self.print))
            yield self

    def print(self, text: str, style: str | None = None) -> None:
        """Print a text of one or more lines."""
        if self._shown:
            self._console.print(text, style=style)

    def status(self, text: str) -> None:
        """Show what is being done, on a terminal, until the next one."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=shown.line(text))


def _copy(stream: TextIO) -> io.TextIOWrapper | None:
    """Open a second way to where a stream goes; None if it goes to no file, as in a test."""
    try:
        number = stream.fileno()
    except io.UnsupportedOperation:
        return None
    stream.flush()
    raw = os.fdopen(os.dup(number), "wb")
    return io.TextIOWrapper(raw, encoding=stream.encoding, errors=stream.errors, line_buffering=True)


@contextmanager
def _taken_in(say: Callable[[str], None]) -> Iterator[None]:
    """Take in what is written to standard output and error, if they are terminals, and say it line by line."""
    streams = [stream for stream in (sys.stdout, sys.stderr) if stream.isatty()]
    numbers = [stream.fileno() for stream in streams]
    kept = [os.dup(number) for number in numbers]
    reading, writing = os.pipe()
    ended, end = os.pipe()
    reader = threading.Thread(target=_say_lines, args=(reading, ended, say), daemon=True)
    try:
        for stream, number in zip(streams, numbers, strict=True):
            stream.flush()
            os.dup2(writing, number)
        reader.start()
        yield
    finally:
        for stream, number, before in zip(streams, numbers, kept, strict=True):
            with contextlib.suppress(BrokenPipeError):
                stream.flush()
            os.dup2(before, number)
            os.close(before)
        os.close(writing)
        # A process that stays may hold the pipe: its end is not waited for.
        os.close(end)
        reader.join()
        os.close(reading)
        os.close(ended)


def _say_lines(reading: int, ended: int, say: Callable[[str], None]) -> None:
    rest = b""
    with selectors.DefaultSelector() as ready:
        ready.register(reading, selectors.EVENT_READ)
        ready.register(ended, selectors.EVENT_READ)
        while reading in {key.fd for key, _ in ready.select()}:
            if not (chunk := os.read(reading, _CHUNK)):
                break
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                say(_plain(line))
    if rest:
        say(_plain(rest))


def _plain(line: bytes) -> str:
    return _COLOURS.sub("", line.decode(errors="backslashreplace")).rstrip("\r")
