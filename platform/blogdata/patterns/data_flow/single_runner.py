"""Single Runner: periods that depend on their own past run one at a time, in order, and a failed one stops the later.

Problem: each period builds on what the one before it left. A backfill that runs two of them at once, or goes on after a
failed one, computes the later one from a state that lacks the earlier.
How it works: a backfill of any number of periods is one run (`BackfillPolicy.single_run`), and the table's pool has one
slot. Runs of the job `refresh` and materializations claim the whole table while they execute it
(`blogdata.runs.turns`); an automatic run that finds it claimed leaves it out, as new data must not wait for a backfill,
and a person's run waits. In the run, :func:`in_turn` executes one period after another, asks again after each what is
due, and ends with the first failure. Between runs, the failed period keeps the later ones waiting (:func:`stopped`):
sensors request none of them until it is published, and the check `waiting` names it. A person's run tries it first.
The trap: a limit of one run at a time is not enough. The queue starts runs by priority, and the run after a failed one
starts as if nothing had happened.
When not to use it: when periods are independent (Concurrent Runner). A period that is late makes all later ones late,
and an old period repeats all later ones; `replay_limit` bounds how many without a person's word.
Source: Data Engineering Design Patterns, ch. 6.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from blogdata.errors import PlatformError

T = TypeVar("T")


def in_turn(
    asked: Collection[str], due: Callable[[Collection[str]], Sequence[str]], execute: Callable[[str], T]
) -> list[T]:
    """Execute periods one at a time, the oldest first, up to the first that fails.

    `due` lists what is left to execute, in order. It is called after each period, which may make later ones due.
    """
    left, results = set(asked), list[T]()
    while todo := due(left):
        period = todo[0]
        try:
            results.append(execute(period))
        except PlatformError as error:
            error.partitions = error.partitions or frozenset({period})
            raise
        left.discard(period)
    return results


def before(periods: Collection[str], failed: Collection[str]) -> list[str]:
    """List the periods that may go on after a failure: those before the first failed one, in order."""
    first = min(failed)
    return sorted(period for period in periods if period < first)


def stopped(periods: Collection[str], failed: Collection[str], *, dataset: str) -> dict[str, PlatformError]:
    if not failed:
        return {}
    first = min(failed)
    return {
        period: PlatformError(
            what=f"it builds on {first}, which has not been published",
            where=dataset,
            next_step=f"mend what {first} waits for; then this one runs by itself",
        )
        for period in sorted(periods)
        if period > first and period not in failed
    }
