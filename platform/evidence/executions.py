"""What a table that is executed by period is made of now, derived from its own commits.

Each execution merges into the table as the one before it has left it. A restoration takes the table back to an earlier
version, and with it all that was executed since. Both are commits that say so about themselves, so this state cannot
disagree with the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from errors import PlatformError
from lake.commit import Entry
from publish.contract import Contract

EMPTY = -1
"""The version before there was any row: what a restoration to nothing goes back to."""


class ReplayTooLong(PlatformError):
    """More executions of a dataset would follow from one that runs again than its contract allows; none was touched."""


@dataclass(frozen=True, kw_only=True)
class Executed:
    """One line of the state table.

    Args:
        execution: Period of the execution.
        version: Version of the table its newest merge has made.
        applied: The table contains that merge; False when the table has been restored to a version before it since.
    """

    execution: str
    version: int
    applied: bool


def applied(marks: Iterable[Entry]) -> tuple[Entry, ...]:
    """Give the executions that the table consists of, in the order of their merges, which is that of their periods.

    Args:
        marks: Executions and restorations of a table, all it ever had.
    """
    return history(marks)[-1][1]


def history(marks: Iterable[Entry]) -> list[tuple[int, tuple[Entry, ...]]]:
    """Give the executions that the table consisted of, as :func:`applied`, with the version from which on it did.

    Args:
        marks: Executions and restorations of a table, all it ever had.
    """
    made: tuple[Entry, ...] = ()
    held = [(EMPTY, made)]
    for mark in sorted(marks, key=lambda mark: mark.version):
        if mark.restored is None:
            # Nothing is later than what was merged last: an empty table may have been restored without a commit.
            made = (*(entry for entry in made if entry.partition < mark.partition), mark)
        else:
            made = next(then for version, then in reversed(held) if version <= mark.restored)
        held.append((mark.version, made))
    return held


def state(marks: Iterable[Entry]) -> dict[str, Executed]:
    """Derive the state table: execution to the version of the table it has made, in order.

    Args:
        marks: Executions and restorations of a table, all it ever had.
    """
    known = sorted(marks, key=lambda mark: mark.version)
    there = {mark.version for mark in applied(known)}
    newest = {mark.partition: mark.version for mark in known if mark.restored is None}
    return {
        execution: Executed(execution=execution, version=version, applied=version in there)
        for execution, version in sorted(newest.items())
    }


def due(contract: Contract, marks: Sequence[Entry], asked: Collection[str]) -> list[str]:
    """Give what has to be executed, in order: what is asked for, and what the table has, or had, later than that.

    Args:
        contract: Of a table that is executed by period.
        marks: Its executions and restorations.
        asked: Executions somebody asks for.

    Returns:
        These and every later execution; executions that a restoration took from the table are among those asked for.

    Raises:
        ReplayTooLong: More later executions than the contract's limit would follow.
    """
    wanted = {*asked, *undone(marks)}
    follow = sorted(key for key in state(marks) if wanted and key > min(wanted) and key not in wanted)
    if contract.replay_limit is not None and len(follow) > contract.replay_limit:
        first = min(wanted)
        raise ReplayTooLong(
            what=f"{len(follow)} later executions would run again after {first}, the limit is {contract.replay_limit}",
            where=contract.dataset,
            next_step="nothing of it runs until somebody names them, too: "
            f"blogdata plan --replay {contract.dataset} --partitions {first}..{follow[-1]}",
        )
    return sorted({*wanted, *follow})


def undone(marks: Sequence[Entry]) -> list[str]:
    """Give the executions that a restoration has taken from the table, and that have to be merged again, in order."""
    return [line.execution for line in state(marks).values() if not line.applied]
