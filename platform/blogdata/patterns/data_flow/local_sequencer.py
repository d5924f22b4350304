"""Local Sequencer: work is cut into steps where it can start again; an expensive step is one of its own.

Problem: a run pays for answers and then writes a table. If the write fails, the run starts again and pays again.

How it works: the answers of the expensive step are stored before any later step begins: each batch is appended to a
journal and synced to disk as soon as it is there. A later run reads the journal first and asks only for the rest. A
lock serves one run at a time, so a second run finds the answers of the first. Answers that a later step has published
are dropped from the journal, but not before they are a day old: a run that read the table before the publication
still finds them. The boundary is the journal. In the lineage of a deployment with a geolocation service, asking is a
step of the run's graph, `landing.place_answers`, before that of `silver.places`, which publishes what the journal has
and asks nobody: its retry, Dagster's re-execution from failure, and a later run pay for nothing again. Without a
service there is no such step.

The trap: an answer that was paid for and never arrived, or arrived in a process that was killed before it was stored,
is paid for twice. Small batches bound that loss; only a service that recognizes repeated requests avoids it. The lock
and the journal are local files: runs on several machines must share the folder.

When not to use it: when the step is cheap; storing its result costs more than repeating it.

Source: Data Engineering Design Patterns, ch. 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from blogdata.errors import PlatformError

Answer = Mapping[str, Any]
Ask = Callable[[Sequence[str]], Mapping[str, Answer]]


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


class Journal(Protocol):
    """Answers that were paid for and may not be published yet."""

    def held(self) -> AbstractContextManager[None]:
        """Keep other runs from asking meanwhile."""

    def stored(self) -> Mapping[str, Answer]:
        """Read the answers, by question."""

    def append(self, answers: Mapping[str, Answer]) -> None:
        """Add answers; they survive a crash when it returns."""


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
    with journal.held():
        stored = journal.stored()
        answers = {question: stored[question] for question in questions if question in stored}
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
