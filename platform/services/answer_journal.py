"""A journal of answers in one file, synced with every batch and locked by one process at a time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.files import locked, write_atomically

Answer = Mapping[str, Any]
_DAY = 86_400.0


@dataclass(frozen=True, kw_only=True)
class AnswerJournal:
    """Answers that were paid for and may not be published yet.

    Args:
        file: The journal; its folder exists.
        seconds: How long to wait for another run that is asking.
        kept: How long an answer stays after it was given, published or not, in seconds.
    """

    file: Path
    seconds: float = field(default=600.0)
    kept: float = field(default=_DAY)

    def settle(self) -> None:
        """Drop the answers older than the time they are kept; called when a later step has published all of them."""
        with self.held():
            stored, oldest = self._lines(), time.time() - self.kept
            rest = [line for line in stored.values() if line["at"] > oldest]
            if len(rest) < len(stored):
                text = "".join(json.dumps(line) + "\n" for line in rest)
                write_atomically(self.file, text.encode(), mode=0o600)

    def held(self) -> AbstractContextManager[None]:
        """Lock the journal against other processes of this machine.

        Raises:
            LockTimeout: Another run has been asking for too long; transient.
        """
        return locked(self.file.with_name(f".{self.file.name}.lock"), seconds=self.seconds)

    def stored(self) -> dict[str, Answer]:
        """Read the answers, by question."""
        return {question: line["answer"] for question, line in self._lines().items()}

    def _lines(self) -> dict[str, dict[str, Any]]:
        """Read the journal; a line cut off by a crash ends it, and is removed so that the next one stands alone."""
        if not self.file.exists():
            return {}
        content = self.file.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            write_atomically(self.file, whole, mode=0o600)
        lines = [json.loads(line) for line in whole.splitlines()]
        return {line["question"]: line for line in lines}

    def append(self, answers: Mapping[str, Answer]) -> None:
        """Add answers, synced to disk."""
        lines = [
            {"question": question, "answer": dict(answer), "at": time.time()} for question, answer in answers.items()
        ]
        descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as handle:
            handle.write("".join(json.dumps(line) + "\n" for line in lines).encode())
            handle.flush()
            os.fsync(handle.fileno())
