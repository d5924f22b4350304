"""Clears every place that remembers persons whose landed lines and current rows are gone, and shows what is left.

Places with rows are cleared by what they are, files that only stand beside them by what a search finds in them. A
second search is the proof: what it still finds is in the result, file by file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from blogdata.erasure.cleared import Cleared, Note, unnoted
from blogdata.erasure.search import Searched, Trace, is_searched_for, search
from blogdata.erasure.traces import (
    exported,
    kept_aside,
    landing_leftovers,
    older_files,
    sqlite_rows,
    sqlite_texts,
    stream_state,
    table_logs,
)
from blogdata.evidence.events import EventLog
from blogdata.evidence.persons import places
from blogdata.lake.lake import Lake
from blogdata.publish.contract import Contract
from blogdata.services import exports
from blogdata.services.config import Settings
from blogdata.suppression.identifiers import Identifiers


@dataclass(frozen=True, kw_only=True)
class Clearing:
    """What was cleared, and what a search of everything still finds."""

    cleared: tuple[Cleared, ...]
    remaining: tuple[Trace, ...]
    searched: Searched
    short: int = 0


def clear(
    settings: Settings,
    contracts: Iterable[Contract],
    persons: Identifiers,
    *,
    since: float,
    began: float | None = None,
    aside: Collection[str] = (),
    note: Note = unnoted,
) -> Clearing:
    """Clear all places of persons whose landed lines and current rows are gone already.

    Args:
        since: When all was computed again, in seconds since 1970; what was published later has no row of the persons.
        began: When the erasure began: a table whose periods build on one another has none in what it was built of
            since. None: as `since`.

    Returns:
        What was done; run again after it was cut off, or after what was left is out of the way, it goes on.
    """
    all_ = tuple(contracts)
    lake = Lake(root=str(settings.lake))
    events = EventLog(lake)
    of_persons = [contract for contract in all_ if any(column.singles_out for column in contract.columns)]
    done = [
        older_files.clear(lake, events, contract, since if began is None or contract.executed is None else began, note)
        for contract in of_persons
    ]
    done.append(sqlite_rows.clear(settings, persons, note))
    done += exported.clear(settings, of_persons, note)
    values = {value for value in persons.values() if is_searched_for(value)}
    found = look(settings, all_, values)
    paths = {trace.path for trace in found.traces}
    done += [table_logs.clear(lake, events, contract, _beside(contract, all_), paths, note) for contract in of_persons]
    done.append(kept_aside.clear_refused(settings.lake, paths, note))
    done.append(kept_aside.clear_spark(settings, paths, note))
    done += sqlite_texts.clear(settings, persons, paths, note)
    done.append(landing_leftovers.clear(settings, paths, note))
    done += stream_state.clear(lake, settings.checkpoints, persons, note)
    proof = look(settings, all_, values)
    remaining = tuple(trace for trace in proof.traces if not trace.path.startswith(tuple(aside)))
    return Clearing(
        cleared=tuple(one for one in done if not one.is_empty),
        remaining=remaining,
        searched=proof,
        short=len(persons.values()) - len(values),
    )


def look(settings: Settings, contracts: Iterable[Contract], values: Iterable[str]) -> Searched:
    """Search all files of a deployment for values."""
    copies = {f"exports/{one.role}{one.folder}": one.folder for one in exports.known(settings)}
    elsewhere = {"lake": settings.lake, "landing": settings.landing, **copies}
    return search(settings.home, values, places(contracts), elsewhere=elsewhere)


def _beside(contract: Contract, contracts: Iterable[Contract]) -> list[str]:
    return [other.dataset for other in contracts if other.appears_with == contract.dataset]
