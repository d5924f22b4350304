"""The batches that streams appended to a table, from the table's own log."""

from __future__ import annotations

from collections.abc import Iterator

from blogdata.lake.commit import Commit, entries_of, parse
from blogdata.lake.lake import Lake


def appended(lake: Lake, dataset: str) -> Iterator[Commit]:
    """Iterate over the commits that appended batches to a table, newest first."""
    table = lake.caught_up(dataset)
    for version, entry in lake.commits(table) if table is not None else []:
        info = parse(entry.get("userMetadata"))
        if info is not None and "appended" in info:
            yield Commit(dataset=dataset, version=version, entries=entries_of(dataset, version, info), info=info)
