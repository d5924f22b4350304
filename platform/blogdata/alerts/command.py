"""The channel `command`: a program that gets the message as JSON on its standard input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from blogdata.alerts.alert import Message
from blogdata.alerts.channel import ChannelFailed
from blogdata.secrets.environment import without_secrets

_SHOWN_BYTES = 300


@dataclass(frozen=True, kw_only=True)
class Command:
    """Runs a program for each message; no shell is involved.

    Args:
        argv: The program and its arguments.
        folder: Where it runs.
    """

    argv: tuple[str, ...]
    folder: Path

    def send(self, message: Message, seconds: float) -> None:
        """Run the program; exit code 0 means that it took the message.

        Raises:
            ChannelFailed: It cannot be started, fails, or takes too long; then it is killed with all it has started.
        """
        with tempfile.TemporaryFile() as said:
            try:
                process = subprocess.Popen(
                    self.argv,
                    cwd=self.folder,
                    env=without_secrets(os.environ),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    # A file, because a pipe would stay open as long as anything the program has started.
                    stderr=said,
                    start_new_session=True,
                )
            except OSError as error:
                raise self._failed(f"it cannot be started: {error.strerror}") from error
            try:
                process.communicate(json.dumps(message.as_json()).encode(), timeout=seconds)
            except subprocess.TimeoutExpired as error:
                raise self._failed(f"it did not end within {seconds:g} s, and was killed") from error
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            if process.returncode != 0:
                said.seek(max(0, said.tell() - _SHOWN_BYTES))
                ending = said.read().decode(errors="replace").strip()
                raise self._failed(f"it ended with exit code {process.returncode}{': ' if ending else ''}{ending}")

    def check(self, seconds: float) -> None:
        """Check that the program exists and may be executed.

        Raises:
            ChannelFailed: It is not there, or may not be executed.
        """
        program = self.argv[0] if os.sep not in self.argv[0] else str(self.folder / self.argv[0])
        if shutil.which(program) is None:
            raise self._failed("there is no such program, or it may not be executed")

    def _failed(self, what: str) -> ChannelFailed:
        return ChannelFailed(
            what=what, where=f"command {self.argv[0]}", next_step="run the program by hand with a message on its input"
        )
