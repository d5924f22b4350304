"""The state of streams: a stream that remembers a person is begun anew, with what is published left as it is.

State is in files that only Spark can change, so all checkpoints of the stream go. A new checkpoint is a new writer, and
passes over landed files whose rows are published (:mod:`blogdata.patterns.error_management.checkpointer`). What is lost
is what its state alone had: sessions that were still open.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from blogdata.erasure.cleared import Cleared, Note
from blogdata.erasure.search import NAME, is_searched_for, search
from blogdata.erasure.traces.kept_aside import files_in, remove_folder
from blogdata.lake.lake import Lake
from blogdata.orchestration import owners, turns
from blogdata.suppression.identifiers import Identifiers

_SHORTEST_NUMBER = 4
"""Digits of an id that are found in rows of a state."""


def clear(lake: Lake, root: Path, persons: Identifiers, note: Note) -> list[Cleared]:
    """Remove the checkpoints of the streams whose state remembers persons; never of one that is running."""
    folders = sorted(root.iterdir()) if root.is_dir() else []
    return [_clear(lake, each, each.name, note) for each in folders if remembers(each, persons)]


def remembers(folder: Path, persons: Identifiers) -> bool:
    """Return whether the checkpoints of a stream have an id or an e-mail of a person, as each row of a state has.

    A login is chosen by its user, and may be a word of any checkpoint, such as `default`. A number may be an offset,
    but not where there are rows alone.
    """
    values = replace(persons, logins=frozenset()).values()
    numbers = [value for value in values if value.isdecimal() and len(value) >= _SHORTEST_NUMBER]
    of_rows = (trace for state in folder.glob("v*/query/state") for trace in search(state, numbers, ()).traces)
    # A file is named by the number of its batch.
    is_there = any(trace.how != NAME for trace in of_rows)
    return is_there or bool(search(folder, filter(is_searched_for, values), ()).traces)


def _clear(lake: Lake, folder: Path, name: str, note: Note) -> Cleared:
    place = f"state of the stream {name}"
    claims, owner = turns.claims(lake, f"stream {name}"), owners.this_run()
    if not claims.take([name], owner):
        return Cleared(place=place, left="it is running")
    try:
        note(done := forgotten(name, folder))
        remove(folder)
    finally:
        claims.release([name], owner)
    return done


def forgotten(name: str, folder: Path) -> Cleared:
    """Return what the removal of a stream's state does."""
    return Cleared(
        place=f"state of the stream {name}",
        files=files_in(folder),
        note="it begins anew; sessions that were open are counted as they end",
    )


def remove(folder: Path) -> None:
    """Remove the checkpoints of a stream; nobody may be running it."""
    # The newest one last: a stream that starts after a removal that was cut off goes on with it.
    for one in sorted(folder.iterdir(), key=lambda one: (len(one.name), one.name)) if folder.is_dir() else []:
        if one.is_dir():
            remove_folder(one)
