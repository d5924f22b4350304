"""Older versions of tables: each file with rows that the current version does not need, whatever it was kept for.

A restore point or a shared version that has the persons' rows cannot stay; it is named as gone. Versions that were made
since all was computed again have none of their rows, and stay if somebody holds them; so do restore points that were
made since the erasure began.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from deltalake.exceptions import DeltaError

from blogdata.erasure.cleared import Cleared, Note
from blogdata.errors import PlatformError
from blogdata.evidence.events import EventLog
from blogdata.evidence.held_versions import held_versions
from blogdata.lake import members, retired, unneeded
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.lake.lake import Lake
from blogdata.orchestration import owners, turns
from blogdata.orchestration.maintenance import BUSY
from blogdata.publish.contract import Contract


def clear(lake: Lake, events: EventLog, contract: Contract, since: float, note: Note) -> Cleared:
    """Remove the older versions of a dataset.

    Args:
        since: From when on, in seconds since 1970, what was published has no row of the persons.

    Returns:
        What was removed, and which versions that somebody held are gone; nothing while another run publishes the
        dataset.
    """
    dataset = contract.dataset
    if lake.folder(dataset) is None:
        return Cleared(place=dataset, note="it is in an object store: have the store remove its old versions")
    if lake.caught_up(dataset) is None:
        return Cleared(place=dataset)
    with alone(lake, events, contract) as alone_since:
        if alone_since is None:
            return Cleared(place=dataset, left=BUSY)
        try:
            if why := _needs_older(lake, events, contract):
                return Cleared(place=dataset, left=why)
            return _clear(lake, events, contract, since, alone_since, note)
        except (PlatformError, DeltaError) as error:
            return Cleared(place=dataset, left=error.what if isinstance(error, PlatformError) else "its log is damaged")


def _needs_older(lake: Lake, events: EventLog, contract: Contract) -> str:
    """Say why the newest version is not all that there is to keep; empty: it is."""
    version = lake.version(contract.dataset)
    if version is None or version < events.recorded(contract.dataset):
        return "its log has lost versions: compute it first"
    read = {name: events.publications(name).get(WHOLE_TABLE) for name in contract.feeds}
    late = [name for name, entry in read.items() if entry and entry.inputs[contract.dataset] < version]
    return f"{', '.join(late)} has not read what changed in it: compute it first" if late else ""


def _clear(lake: Lake, events: EventLog, contract: Contract, since: float, alone_since: float, note: Note) -> Cleared:
    dataset, files, gone = contract.dataset, list[Path](), dict[str, str]()
    for table in tables(lake, dataset):
        opened = lake.table(table)
        if opened is None:
            continue
        clean = (version for version, commit in lake.commits(opened) if _at(commit) >= since)
        first = min(clean, default=opened.version())
        held = held_versions(lake, events, contract, table)
        lost = {_name(dataset, table, version): why for version, why in held.items() if version < first}
        kept = [version for version in held if first <= version < opened.version()]
        found = unneeded.superseded(lake, table, kept, alone_since)
        files += found
        # Said only of versions whose files were there until now; a current version that is held has lost none.
        gone.update(lost if found else {})
    gone.pop(_name(dataset, dataset, lake.version(dataset) or 0), None)
    note(done := Cleared(place=dataset, files=len(files), gone=gone))
    unneeded.remove(files)
    return done


def _at(commit: Mapping[str, Any]) -> float:
    return float(commit.get("timestamp", 0)) / 1000


def tables(lake: Lake, dataset: str) -> list[str]:
    """List the tables of a dataset: its own, and those of its visible members; others are removed."""
    table = lake.table(dataset)
    if table is None or not members.is_pointer(table):
        return [dataset]
    retired.remove(lake, dataset, keep=timedelta(0))
    locations = sorted({one.location for one in members.members_of(table).visible})
    return [dataset, *(members.table_of(dataset, location) for location in locations)]


def _name(dataset: str, table: str, version: int) -> str:
    member = "" if table == dataset else f" of {table}"
    return f"version {version}{member}"


@contextmanager
def alone(lake: Lake, events: EventLog, contract: Contract) -> Iterator[float | None]:
    """Claim a dataset against others that publish it.

    Yields:
        The moment since which nobody else publishes it, in seconds since 1970: whoever begins later writes newer files.
        None while somebody does.
    """
    claims, owner = turns.claims(lake, contract.main), owners.this_run()
    taken = claims.take([WHOLE_TABLE, *events.publications(contract.main)], owner)
    try:
        others = [claim for claim in claims.held().values() if claim.owner != owner]
        # The clock of the file system may be a little behind.
        yield None if others else time.time() - 1
    finally:
        claims.release(taken, owner)
