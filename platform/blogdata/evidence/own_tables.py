"""The tables that the platform keeps for itself, and how they are repaired.

The event log copies what the tables' commits say about themselves, so its publications are taken from these again. What
it alone has (findings, observations, notes of replays and of columns that were read) is taken from those of its files
that can be read: it only ever grows, and a compaction copies its rows, so every row of every file belongs to it, once.
The files that the newest compaction replaced are kept as a second copy.
Claims are of processes that are at work now; they are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from blogdata.errors import PlatformError
from blogdata.evidence import claims
from blogdata.evidence.claims import PARTITION_STATE
from blogdata.evidence.damage import Damage, DamageKind, damage_of, inspect, of_the_log
from blogdata.evidence.event import EXPIRED, PUBLICATION, RESTORATION, SCHEMA, Event, table_of
from blogdata.evidence.events import EVENTS, published
from blogdata.evidence.repair import put_aside
from blogdata.lake import arrow, log_anew
from blogdata.lake.lake import Lake

OWN: Mapping[str, str] = MappingProxyType(
    {
        EVENTS: "The event log",
        PARTITION_STATE: "Claims on partitions",
    }
)
"""The platform's own tables: what writes them compacts them, too."""
_PARTITION = "dataset"


def inspect_own(lake: Lake, datasets: Iterable[str]) -> Mapping[str, Sequence[Damage]]:
    """Check the files of the platform's own tables, and that the event log has every publication up to its newest one.

    Returns:
        Table to its damage; without the tables that are whole.
    """
    found = {name: list(inspect(lake, name, _PARTITION)) for name in OWN}
    if not found[EVENTS]:
        found[EVENTS] = list(_unrecorded(lake, datasets))
    return {name: damages for name, damages in found.items() if damages}


def mend_own(lake: Lake, table: str, datasets: Iterable[str]) -> str:
    """Begin the log of one of these tables anew, with all that is still known.

    Returns:
        What was done, and what is lost.
    """
    folder = lake.folder(table)
    assert folder is not None
    damaged = inspect(lake, table, _PARTITION)
    gone = [damage for damage in damaged if damage.partition is not None and not damage.file.exists()]
    version = log_anew.begin(folder)
    unreadable: list[Path] = []
    if table == EVENTS:
        rows, unreadable = _events(lake, folder, datasets)
        done = f"{rows.num_rows} events were taken from all of its files and from the tables' commits"
        lost = "findings and notes"
    else:
        rows, lost = claims.SCHEMA.empty_table(), ""
        done = "claims on partitions are forgotten: a run that is at work now may meet another one"
    if lost:
        files = len(gone) + len(unreadable)
        done += f"; {lost} of {files} of its files are lost" if files else "; no file of it is lost"
    log_anew.complete(folder, version, rows, partition_by=[_PARTITION])
    for file in unreadable:
        put_aside(file)
    for damage in of_the_log(folder / "_delta_log"):
        put_aside(damage.file)
    return done


def _unrecorded(lake: Lake, datasets: Iterable[str]) -> Iterator[Damage]:
    log = lake.table(EVENTS)
    if log is None:
        return
    kinds = ", ".join(map(arrow.text, (PUBLICATION, RESTORATION, EXPIRED)))
    rows = arrow.select(log, f"SELECT dataset, table_version, partition FROM t WHERE kind IN ({kinds})")
    there = {(row["dataset"], row["table_version"], row["partition"]) for row in rows}
    newest: dict[str, int] = {}
    for dataset, version, _ in there:
        newest[dataset] = max(version, newest.get(dataset, -1))
    for dataset in datasets:
        missing = [
            event
            for _, events in _published(lake, dataset)
            for event in events
            if (dataset, event.table_version, event.partition) not in there
            # Later ones are added by the next reader.
            and (event.table_version or 0) <= newest.get(dataset, -1)
        ]
        if missing:
            problem = f"{len(missing)} publications of {dataset} are missing from it"
            folder = Path(lake.path(EVENTS))
            yield Damage(kind=DamageKind.DATA, file=folder, problem=problem, version=log.version(), partition=dataset)


def _events(lake: Lake, folder: Path, datasets: Iterable[str]) -> tuple[pa.Table, list[Path]]:
    """Gather all events: those in files that can be read, then those of commits; and the files that cannot be."""
    tables, (files, unreadable) = [], _read(folder.glob(f"{_PARTITION}=*/*.parquet"))
    for file, rows in files.items():
        dataset = unquote(file.parent.name.partition("=")[2])
        tables.append(rows.append_column(_PARTITION, pa.array([dataset] * rows.num_rows, pa.string())))
    for dataset in datasets:
        tables += [table_of(events, at) for at, events in _published(lake, dataset)]
    every = pa.concat_tables([SCHEMA.empty_table(), *tables], promote_options="permissive").select(SCHEMA.names)
    first = {identity: number for number, identity in reversed(list(enumerate(every["event_id"].to_pylist())))}
    return every.take(sorted(first.values())).cast(SCHEMA), unreadable


def _read(files: Iterable[Path]) -> tuple[dict[Path, pa.Table], list[Path]]:
    """Read the files that are whole, each by itself: the names of its folders are no columns; and list the others."""
    found: dict[Path, pa.Table] = {}
    unreadable = []
    for file in sorted(files):
        if damage_of(file):
            unreadable.append(file)
        else:
            found[file] = pq.ParquetFile(file).read()
    return found, unreadable


def _published(lake: Lake, dataset: str) -> Iterator[tuple[datetime, Sequence[Event]]]:
    try:
        table = lake.caught_up(dataset)
        if table is not None:
            yield from published(lake, dataset, table)
    except PlatformError:
        # Its own log is damaged: it is repaired after this one, and looked at again then.
        return
