"""Holds a stream's checkpoint against the lake: what the checkpoint counts as published must be there.

A checkpoint passes over the input that it has published. Beside a lake that lacks these rows (put back from a copy, or
emptied) the stream would leave them out for ever, and what is published would still add up. So each checkpoint notes,
after every batch, the identity and the version of the tables that have it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from blogdata.durable.whole_file import write_atomically
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, RunStream
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.patterns.error_management.checkpoint_files import parsed
from blogdata.patterns.error_management.checkpointer import Checkpoint, checkpoints

_NOTE = "published.json"


class LakeBehind(PlatformError):
    """The lake lacks what a stream has published."""


def note(checkpoint: Checkpoint, lake: Lake, datasets: Sequence[str]) -> None:
    """Note the tables that have all batches of a checkpoint so far."""
    tables = {name: table for name in datasets if (table := lake.caught_up(name)) is not None}
    noted = {name: {"id": str(table.metadata().id), "version": table.version()} for name, table in tables.items()}
    write_atomically(checkpoint.folder / _NOTE, json.dumps(noted, indent=1, sort_keys=True).encode())


def require(root: Path, stream: str, lake: Lake, datasets: Sequence[str], *, renew: bool = False) -> None:
    """Require that the lake has what the newest checkpoint of a stream has published.

    Args:
        renew: Whether a new checkpoint takes the place of the newest one. It reads all input again and passes over
            published files, so older tables will do if all of them are older, and so will none.

    Raises:
        LakeBehind: A table is gone, older, or another one.
    """
    events = EventLog(lake)
    tables = {name: table for name in datasets if (table := lake.caught_up(name)) is not None}
    noted = {}
    for checkpoint in checkpoints(root, stream)[-1:]:
        if (file := checkpoint.folder / _NOTE).exists():
            noted = parsed(file, file.read_text(encoding="utf-8"))
    behind = [
        name
        for name, known in noted.items()
        if name not in tables
        or str(tables[name].metadata().id) != known["id"]
        or tables[name].version() < known["version"]
    ]
    # Of these tables alone, not of the whole lake, an older copy was put back: versions would come twice.
    single = [name for name in tables if events.gone(name) >= 0]
    can_begin = not tables or not (single or noted.keys() - tables.keys() or set(behind) not in (set(), set(noted)))
    if can_begin if renew else not (behind or single):
        return
    folders = "" if can_begin else f"move {' and '.join(map(lake.path, tables))} away, and "
    lacking = dict.fromkeys([*behind, *single])
    raise LakeBehind(
        what=f"the lake lacks what the stream '{stream}' has published: {', '.join(lacking)} gone or older",
        where=lake.root,
        next_step=Remedy(
            f"bring back the lake that has it; or {folders}begin a new checkpoint: ",
            RunStream(name=stream, new_checkpoint=True),
            " (it reads again what is in the landing zone, and passes over the files that are published)",
        ),
    )
