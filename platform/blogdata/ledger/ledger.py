"""The conservation ledger: rows in = rows out + every row left out, with its reason.

Three independent figures are compared for every partition: what the layer above recorded, what the writing job measured
in the files it published, and what the table's log says is there now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from blogdata.contract.contract import Contract
from blogdata.contract.publication import WHOLE_TABLE, Entry
from blogdata.contract.writes import Append
from blogdata.errors.remedies import Remedy, Replay, Run, RunStream
from blogdata.ledger.events import EventLog
from blogdata.ledger.executions import applied
from blogdata.table import arrow
from blogdata.table.lake import Lake
from blogdata.table.store import file_of, local_folder, problem_of


@dataclass(frozen=True, kw_only=True)
class LedgerLine:
    """One partition of a dataset as its newest publication recorded it, and what does not add up."""

    entry: Entry
    rows_there: int
    problem: str | None

    @property
    def balanced(self) -> bool:
        return self.problem is None


def audit(
    lake: Lake, events: EventLog, contract: Contract, partitions: Iterable[str] | None = None, *, read: bool = False
) -> Sequence[LedgerLine]:
    """Check the account of each published partition of a dataset, and that its data files are there.

    With `read` every byte of the files is compared with its checksums, too. A table that is executed by period has one
    line, that of the newest execution it contains, because its rows are those that this execution left.
    """
    counts, published = _at_one_version(lake, events, contract, None if partitions is None else list(partitions))
    damaged = _damaged(lake, contract, published, read=read)
    lines = []
    if partitions is None and (lost := events.gone(contract.dataset)) >= 0:
        what = f"version {lost} was published, and the table is gone or older; to compute it again: {_run(contract)}"
        return [_without_account(contract, WHOLE_TABLE, lost, sum(counts.values()), what)]
    for key, entry in sorted(published.items()):
        rows_there = counts.get(key, 0)
        problem = _problem(entry, rows_there) or damaged.get(key)
        lines.append(LedgerLine(entry=entry.settled(), rows_there=rows_there, problem=problem))
    if partitions is None:
        for key in sorted(set(counts) - published.keys()):
            problem = f"{counts[key]} rows that no publication accounts for"
            lines.append(_without_account(contract, key, -1, counts[key], problem))
    return lines


def _without_account(contract: Contract, key: str, version: int, rows: int, problem: str) -> LedgerLine:
    entry = Entry(dataset=contract.dataset, partition=key, version=version, rows_in=0, rows_out=0, reasons={})
    return LedgerLine(entry=entry, rows_there=rows, problem=problem)


_LOOKS = 5
"""How often the table is read again while other runs keep publishing it."""


def _at_one_version(
    lake: Lake, events: EventLog, contract: Contract, partitions: Sequence[str] | None
) -> tuple[Mapping[str, int], Mapping[str, Entry]]:
    column = contract.partition_column
    for _ in range(_LOOKS):
        version = lake.version(contract.dataset)
        counts = lake.row_counts(contract.dataset, column, version, partitions=partitions)
        if contract.executed is not None:
            newest = {entry.partition: entry for entry in applied(events.history(contract.dataset))[-1:]}
            counts = {key: counts.get(WHOLE_TABLE, 0) for key in newest} or counts
            published = {key: entry for key, entry in newest.items() if partitions is None or key in partitions}
        else:
            published = events.publications(contract.dataset, partitions)
        if version is None or all(entry.version <= version for entry in published.values()):
            break
        # Another run published between the two reads: its rows would be missing from the first.
    return counts, published


def _run(contract: Contract) -> Remedy:
    return Remedy(RunStream(name=contract.write.stream) if isinstance(contract.write, Append) else Run())


def _again(contract: Contract, partition: str) -> Remedy:
    """Return how the rows of a damaged file come back; what is built on earlier rows of the table begins anew."""
    by_itself = contract.partitioning is not None and contract.executed is None
    if by_itself and not isinstance(contract.write, Append):
        return Remedy("to compute it again: ", Replay(dataset=contract.dataset, partitions=partition))
    return Remedy("move the folder of the table away, and compute it again: ", _run(contract))


def _damaged(lake: Lake, contract: Contract, partitions: Collection[str], *, read: bool) -> Mapping[str, str]:
    """Look at the files of some partitions; not in an object store, which has checksums of its own."""
    damaged: dict[str, str] = {}
    column = contract.partition_column
    for part in lake.parts(contract.dataset, partitions=None if column is None else partitions):
        folder = local_folder(part.table)
        if folder is None:
            continue
        names = ["path", "size_bytes", *([] if column is None else [f"partition.{column}"])]
        for path, size, *key in map(dict.values, arrow.rows_of(part.table.get_add_actions(flatten=True), names)):
            # What is written whole has one line, whatever its name.
            keys = [str(key[0])] if key else list(partitions)
            # A frozen year keeps its files of a week that was replaced; nobody reads them.
            if set(keys).isdisjoint(partitions) or (part.partitions is not None and part.partitions.isdisjoint(keys)):
                continue
            if problem := problem_of(file_of(folder, path), size, read=read):
                what = f"a data file is damaged: {file_of(folder, path)}: {problem}"
                damaged.update({key: f"{what}; {_again(contract, key)}" for key in keys})
    return damaged


def _problem(entry: Entry, rows_there: int) -> str | None:
    if entry.missing > 0:
        return f"{entry.missing} rows of the layer above vanished"
    if entry.missing < 0:
        return f"{-entry.missing} rows more than the layer above has"
    if rows_there != entry.rows_kept:
        return f"{entry.rows_kept} rows were published but {rows_there} are in the table"
    return None
