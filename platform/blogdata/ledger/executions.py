"""The executions that a table executed by period currently contains, derived from its own commits.

Each execution merges into the table as the previous one left it; one that runs again is merged into an earlier version
and undoes all later ones. Each commit's metadata names its execution, so this state cannot disagree with the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from blogdata.contract.contract import Contract
from blogdata.contract.publication import Entry
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Replay

EMPTY = -1
"""The version before the first row: what the first execution is merged into."""


class ReplayTooLong(PlatformError):
    """A rerun would trigger more later executions of a dataset than its contract allows; none was started."""


def applied(marks: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the executions that the table contains, in the order of their merges, which is that of their periods."""
    made: tuple[Entry, ...] = ()
    for mark in sorted(marks, key=lambda mark: mark.version):
        made = (*(entry for entry in made if entry.partition < mark.partition), mark)
    return made


def base_of(entry: Entry) -> int:
    """Return a version with the rows that an execution was merged into; compactions since them are in it."""
    return entry.version - 1 if entry.restored is None else entry.restored


def state(marks: Iterable[Entry]) -> list[tuple[str, int, bool]]:
    """List the executions in order, each with the version of its newest merge, and whether the table contains that."""
    known = sorted(marks, key=lambda mark: mark.version)
    contained = {mark.version for mark in applied(known)}
    newest = {mark.partition: mark.version for mark in known}
    return [(execution, version, version in contained) for execution, version in sorted(newest.items())]


def due(contract: Contract, marks: Sequence[Entry], asked: Collection[str]) -> list[str]:
    """Compute the executions to run, in order: the requested and undone ones, and all later ones the table has had."""
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
    """List the executions that an earlier one has undone and that must be merged again, in order."""
    return [execution for execution, _, is_applied in state(marks) if not is_applied]
