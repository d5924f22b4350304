"""Logs of tables: a log with values, as limits of columns or names of partitions, begins anew with a checkpoint.

What the platform writes has no limits of columns of persons, but earlier code or another program may have written them.
The history before the checkpoint is lost; the event log has read it, and companions have followed it, before it goes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from deltalake.exceptions import DeltaError

from blogdata.erasure.cleared import Cleared, Note
from blogdata.erasure.traces.older_files import alone, tables
from blogdata.errors import PlatformError
from blogdata.evidence.events import EventLog
from blogdata.evidence.held_versions import held_versions
from blogdata.lake import companions, unneeded
from blogdata.lake.lake import Lake
from blogdata.orchestration.maintenance import BUSY
from blogdata.publish.contract import Contract

_NUMBERED = re.compile(r"^(\d{20})\.")


def clear(
    lake: Lake, events: EventLog, contract: Contract, beside: Iterable[str], paths: Collection[str], note: Note
) -> Cleared:
    """Remove the files before a new checkpoint from the logs of a dataset that have values."""
    place = f"log of {contract.dataset}"
    if not any(path.startswith((_folder(contract.dataset), _members(contract))) for path in paths):
        return Cleared(place=place)
    with alone(lake, events, contract) as since:
        if since is None:
            return Cleared(place=place, left=BUSY)
        try:
            for companion in beside:
                companions.caught_up(lake, companion)
            named = tables(lake, contract.dataset)
            found = [table for table in named if any(path.startswith(_folder(table)) for path in paths)]
            earlier = [file for table in found for file in _before_checkpoint(lake, events, contract, table)]
            note(done := Cleared(place=place, files=len(earlier)))
            unneeded.remove(earlier)
            return done
        except (PlatformError, DeltaError) as error:
            return Cleared(place=place, left=error.what if isinstance(error, PlatformError) else "it is damaged")


def _before_checkpoint(lake: Lake, events: EventLog, contract: Contract, table: str) -> list[Path]:
    """Make a checkpoint, and list the files that nobody needs who begins with it."""
    folder, version = lake.folder(table), lake.version(table)
    if folder is None or version is None:
        return []
    held = [one for one in held_versions(lake, events, contract, table) if lake.is_whole(table, one)]
    first = min([version, *held])
    # Its own log is a copy of the state: nobody who reads from it on needs an earlier file.
    lake.at(table, first).create_checkpoint()
    log = folder / "_delta_log"
    numbered = [(int(match[1]), file) for file in sorted(log.iterdir()) if (match := _NUMBERED.match(file.name))]
    return [file for number, file in numbered if number < first]


def _folder(table: str) -> str:
    return f"lake/{table.replace('.', '/', 1)}/_delta_log/"


def _members(contract: Contract) -> str:
    layer, _, name = contract.dataset.partition(".")
    return f"lake/{layer}/_{name}/"
