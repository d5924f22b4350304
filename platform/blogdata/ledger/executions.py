"""The executions that a table executed by period currently contains, derived from its own commits.

Each execution merges into the table as the previous one left it; a restoration to an earlier version undoes all
executions since. Both are commits whose metadata names them, so this state cannot disagree with the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from blogdata.contract.contract import Contract
from blogdata.contract.publication import Entry
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Replay

EMPTY = -1
"""The version before the first row: the target of a restoration to the empty table."""


class ReplayTooLong(PlatformError):
    """A rerun would trigger more later executions of a dataset than its contract allows; none was started."""


def applied(marks: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the executions that the table contains, in the order of their merges, which is that of their periods."""
    return history(marks)[-1][1]


def history(marks: Iterable[Entry]) -> list[tuple[int, tuple[Entry, ...]]]:
    """List the executions that the table contained over time, as :func:`applied`, each with its first version."""
    made: tuple[Entry, ...] = ()
    held = [(EMPTY, made)]
    for mark in sorted(marks, key=lambda mark: mark.version):
        if mark.restored is None:
            # The newest merge has the last period: later ones are dropped, as restoring an empty table may not commit.
            made = (*(entry for entry in made if entry.partition < mark.partition), mark)
        else:
            made = next(then for version, then in reversed(held) if version <= mark.restored)
        held.append((mark.version, made))
    return held


def state(marks: Iterable[Entry]) -> list[tuple[str, int, bool]]:
    """List the executions in order, each with the version of its newest merge, and whether the table contains that."""
    known = sorted(marks, key=lambda mark: mark.version)
    contained = {mark.version for mark in applied(known)}
    newest = {mark.partition: mark.version for mark in known if mark.restored is None}
    return [(execution, version, version in contained) for execution, version in sorted(newest.items())]


def due(contract: Contract, marks: Sequence[Entry], asked: Collection[str]) -> list[str]:
    """Compute the executions to run, in order: the requested and undone ones, and all later ones the table has or had.

    :class:`ReplayTooLong`: more later executions than the contract's limit would run again.
    """
    wanted = {*asked, *undone(marks)}
    follow = [key for key, *_ in state(marks) if wanted and key > min(wanted) and key not in wanted]
    if contract.replay_limit is not None and len(follow) > contract.replay_limit:
        first = min(wanted)
        replay = Replay(dataset=contract.dataset, partitions=f"{first}..{follow[-1]}")
        raise ReplayTooLong(
            what=f"{len(follow)} later executions would run again after {first}, the limit is {contract.replay_limit}",
            where=contract.dataset,
            next_step=Remedy("nothing of it runs until somebody names them, too: ", replay),
        )
    return sorted({*wanted, *follow})


def undone(marks: Sequence[Entry]) -> list[str]:
    """List the executions that a restoration has undone and that must be merged again, in order."""
    return [execution for execution, _, is_applied in state(marks) if not is_applied]
