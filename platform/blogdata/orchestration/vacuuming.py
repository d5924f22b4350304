"""The maintenance actions that remove files that nobody can need any more: data files, and old files of the logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from blogdata.evidence.held_versions import first_needed, held_versions
from blogdata.lake import members, unneeded
from blogdata.lake.lake import Lake
from blogdata.lake.shares import shared_files
from blogdata.orchestration.maintenance import OWN, Done, Due, Inspection, Upkeep
from blogdata.publish.contract import Contract


class Vacuuming:
    """Removes the data files that no version needs which may still be read; members are looked at one by one."""

    name = "vacuum"

    def due(self, seen: Inspection, contract: Contract) -> Due | None:
        """Decide whether files of a dataset are needed by no version, and have been for a day: not for every one."""
        earlier = Inspection(lake=seen.lake, events=seen.events, now=seen.now - unneeded.MARGIN)
        if not _data_files(earlier, contract):
            return None
        return _due(contract, self.name, _data_files(seen, contract))

    def do(self, upkeep: Upkeep, contract: Contract, due: Due) -> Done:
        """Remove the files; no commit is made."""
        unneeded.remove(_data_files(upkeep, contract))
        return Done(due=due)


class LogCleaning:
    """Removes the files of logs that nobody has to read any more; before, the event log has read all there is."""

    name = "log"

    def __init__(self, companions: Mapping[str, Iterable[str]]) -> None:
        self._companions = companions

    def due(self, seen: Inspection, contract: Contract) -> Due | None:
        """Decide whether a log has files that are older than it has to tell of."""
        return _due(contract, self.name, self._files(seen, contract))

    def do(self, upkeep: Upkeep, contract: Contract, due: Due) -> Done:
        """Remove the files."""
        unneeded.remove(self._files(upkeep, contract))
        return Done(due=due)

    def _files(self, seen: Inspection, contract: Contract) -> list[Path]:
        table = seen.lake.table(contract.dataset)
        if table is None:
            return []
        old = unneeded.log_files(seen.lake, contract.dataset, table.version(), seen.now)
        if not old:
            # Without a file to remove at any rate, the event log is not asked.
            return []
        if contract in OWN:
            needed = min([table.version(), *held_versions(seen.lake, seen.events, contract, contract.dataset)])
        else:
            beside = self._companions.get(contract.dataset, ())
            needed = first_needed(seen.lake, seen.events, contract, beside, now=seen.now)
        return unneeded.log_files(seen.lake, contract.dataset, needed, seen.now)


def _data_files(seen: Inspection, contract: Contract) -> list[Path]:
    found = [file for table in tables(seen.lake, contract.dataset) for file in _unneeded(seen, contract, table)]
    # Commits that the table's log has lost may come back from a backup, and need their files then.
    return found if found and _is_whole(seen, contract.dataset) else []


def _unneeded(seen: Inspection, contract: Contract, table: str) -> Iterator[Path]:
    held = held_versions(seen.lake, seen.events, contract, table, now=seen.now)
    shared = shared_files(seen.lake, contract.dataset)
    # The log may have lost a shared version: Delta itself cleans it up after thirty days, whoever holds what.
    return (file for file in unneeded.data_files(seen.lake, table, held, seen.now) if file not in shared)


def _is_whole(seen: Inspection, dataset: str) -> bool:
    table = seen.lake.table(dataset)
    return table is not None and table.version() >= seen.events.recorded(dataset)


def tables(lake: Lake, dataset: str) -> list[str]:
    """List the tables of a dataset: its own, and those of its members that are not removed."""
    table = lake.caught_up(dataset)
    if table is None:
        return []
    kept = (
        {one.location for one in members.members_of(table).all if not one.removed_at}
        if members.is_pointer(table)
        else ()
    )
    return [dataset, *(members.table_of(dataset, location) for location in sorted(kept))]


def _due(contract: Contract, action: str, files: Iterable[Path]) -> Due | None:
    sizes = unneeded.sizes(files)
    return Due(dataset=contract.dataset, action=action, files=len(sizes), bytes=sum(sizes)) if sizes else None
