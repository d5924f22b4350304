"""Local Sequencer: work is cut into steps where it can start again; an expensive step is one of its own.

Problem: a run pays for answers and then writes a table. If the write fails, the run starts again and pays again.

How it works: the answers of the expensive step are stored before any later step begins: each batch is appended to a
journal and synced to disk as soon as it is there. A later run reads the journal first and asks only for the rest. A
lock serves one run at a time, so a second run finds the answers of the first. Answers that a later step has published
are dropped from the journal, but not before they are a day old: a run that read the table before the publication
still finds them.

The trap: an answer that was paid for and never arrived, or arrived in a process that was killed before it was stored,
is paid for twice. Small batches bound that loss; only a service that recognizes repeated requests avoids it. The lock
and the journal are local files: runs on several machines must share the folder.

When not to use it: when the step is cheap; storing its result costs more than repeating it.

Source: Data Engineering Design Patterns, ch. 6.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from errors import PlatformError
from services.files import locked, write_atomically

Answer = Mapping[str, Any]
Ask = Callable[[Sequence[str]], Mapping[str, Answer]]
_DAY = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Result of the expensive step.

    Args:
        answers: Question to its answer, from the journal or new.
        missing: Questions without an answer.
        fault: Why the rest was not asked; None if all was.
    """

    answers: Mapping[str, Answer]
    missing: tuple[str, ...] = ()
    fault: PlatformError | None = None


@dataclass(frozen=True, kw_only=True)
class Journal:
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
        with locked(self.lock, seconds=self.seconds):
            stored, oldest = self.stored(), time.time() - self.kept
            rest = [line for line in stored.values() if line["at"] > oldest]
            if len(rest) < len(stored):
                text = "".join(json.dumps(line) + "\n" for line in rest)
                write_atomically(self.file, text.encode(), mode=0o600)

    @property
    def lock(self) -> Path:
        """The file that one run locks while it asks."""
        return self.file.with_name(f".{self.file.name}.lock")

    def stored(self) -> dict[str, dict[str, Any]]:
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


def ask_once(journal: Journal, questions: Sequence[str], ask: Ask, *, at_most: int) -> Asked:
    """Return the answers, asking only for those that the journal does not have.

    Args:
        journal: Where the answers are stored.
        questions: Distinct texts; one that may be asked again later must contain what makes it another question.
        ask: Asks a batch; questions without an answer are absent from its result.
        at_most: Size of a batch.

    Raises:
        LockTimeout: Another run has been asking for too long; transient.
    """
    with locked(journal.lock, seconds=journal.seconds):
        stored = journal.stored()
        answers = {question: stored[question]["answer"] for question in questions if question in stored}
        left = [question for question in questions if question not in answers]
        fault: PlatformError | None = None
        for start in range(0, len(left), at_most):
            try:
                found = ask(left[start : start + at_most])
            except PlatformError as error:
                if not error.transient:
                    raise
                fault = error
                break
            journal.append(found)
            answers.update(found)
    missing = tuple(question for question in questions if question not in answers)
    return Asked(answers=answers, missing=missing, fault=fault)
