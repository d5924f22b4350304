"""Which tables of a database are due to be loaded, and their loads: whole (Full Loader), or by windows of time
(Incremental Loader)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blogdata.contract.partitions import Grain, key_of, previous, start_of
from blogdata.contract.publication import WHOLE_TABLE, Entry
from blogdata.landing.lines import UNTIMED
from blogdata.landing.suppression_list import erase_known
from blogdata.operate import postgres, postgres_connection
from blogdata.planning import clock
from blogdata.planning.reach import delivered_on
from quality.contracts import landed

if TYPE_CHECKING:
    import psycopg

    from blogdata.landing.incremental_loader import DeltaTable
    from blogdata.operate.config import Settings

DEVICES, USERS, LEGACY_VISITS = "devices", "users", "legacy_visits"
READERS = {DEVICES: "bronze.devices", USERS: "bronze.users", LEGACY_VISITS: "bronze.visits"}
"""Table to the dataset that reads what it lands."""
WINDOWS = {USERS: Grain.DAY, LEGACY_VISITS: Grain.HOUR}
"""Table that is loaded by its delta column to the length of its windows."""


def due(settings: Settings, published: Callable[[str], Mapping[str, Entry]]) -> list[str]:
    """List the tables of a deployment that have something to load.

    Devices are due if today's state is neither published nor delivered otherwise: a delivery that was refused is loaded
    again, in case the table was mended meanwhile. Changed users and visits are due if an hour has ended since the last
    load.
    """
    tables, names = settings.tables, list[str]()
    if tables.devices is not None:
        newest = published(READERS[DEVICES]).get(WHOLE_TABLE)
        if newest is None or delivered_on(newest) < _today():
            names.append(DEVICES)
    for table, name in ((USERS, tables.users), (LEGACY_VISITS, tables.legacy_visits)):
        if name is not None and _loaded_until(settings, table) < _last_hour():
            names.append(table)
    return names


def load(settings: Settings, table: str) -> dict[str, Any]:
    """Load what is due of a table; returns metadata of the load."""
    if table == DEVICES:
        return load_devices(settings)
    from blogdata.landing import incremental_loader

    until, last = _loaded_until(settings, table), _last_hour()
    grain = WINDOWS[table]
    begin = key_of(start_of(settings.tables.since, Grain.DAY), grain)
    if until:
        again = start_of(until, Grain.HOUR) - timedelta(seconds=settings.tables.overlap)
        begin = max(begin, key_of(again, grain))
    window = last if grain is Grain.HOUR else _today()
    loaded = load_windows(settings, table, [begin, window], is_first=not until)
    incremental_loader.note_loaded(_folder(settings, table), table, last)
    return loaded


def load_devices(settings: Settings) -> dict[str, Any]:
    """Load the devices as they are now, as today's delivery; result as of :func:`load`."""
    from blogdata.landing import full_loader

    assert settings.tables.devices is not None
    folder = settings.landing / "devices" / f"date={_today()}"
    with _connected(settings) as connection:
        loaded = full_loader.land(
            connection,
            settings.tables.devices,
            landed.DEVICE,
            folder,
            settings.landing,
            prepare=lambda file: erase_known(settings, settings.landing, [file]),
        )
    return {
        "table": settings.tables.devices,
        "day": _today(),
        "rows": loaded.rows,
        "bytes": loaded.file.stat().st_size,
        "changed": loaded.changed,
    }


def load_windows(settings: Settings, table: str, windows: Sequence[str], *, is_first: bool = False) -> dict[str, Any]:
    """Load the rows of the windows (days or hours, in order) from the first to the last of some, and no other ones."""
    from blogdata.landing import incremental_loader

    source = _delta_table(settings, table)
    with _connected(settings) as connection:
        loaded = incremental_loader.load(
            connection,
            source,
            _folder(settings, table),
            windows[0],
            windows[-1],
            now=clock.now(),
            untimed_in=_last_hour() if source.grain is Grain.HOUR else _today(),
            count_before=is_first,
            prepare=lambda file: erase_known(settings, settings.landing, [file]),
        )
    return {
        "table": source.name,
        "windows": f"{windows[0]}..{windows[-1]}",
        "rows": sum(loaded.rows.values()),
        "new": sum(loaded.new.values()),
        "without a usable time": loaded.rows.get(UNTIMED, 0),
        **({} if loaded.before is None else {"before the first window, not loaded": loaded.before}),
    }


def _delta_table(settings: Settings, table: str) -> DeltaTable:
    from assets.bronze import legacy_visits, user_changes
    from blogdata.landing.incremental_loader import DeltaTable

    tables = settings.tables
    of, name, announced, line = (
        (user_changes, tables.users, landed.CHANGED_USER, landed.CHANGED_USER)
        if table == USERS
        else (legacy_visits, tables.legacy_visits, landed.LEGACY_VISIT, landed.VISIT + landed.OF_LEGACY_VISITS)
    )
    assert name is not None
    return DeltaTable(name=name, delta=of.DELTA, announced=announced, line=line, prefix=of.PREFIX, grain=WINDOWS[table])


def _folder(settings: Settings, table: str) -> Path:
    return settings.landing / READERS[table].partition(".")[2]


def _connected(settings: Settings) -> AbstractContextManager[psycopg.Connection]:
    return postgres_connection.connected(postgres.of_tables(settings) or postgres.running_address(settings))


def _loaded_until(settings: Settings, table: str) -> str:
    """Return the last hour up to which a table was loaded; if empty, all windows are compared with what has landed."""
    from blogdata.landing import incremental_loader

    return incremental_loader.loaded_until(_folder(settings, table), table)


def _last_hour() -> str:
    return previous(key_of(clock.now(), Grain.HOUR), Grain.HOUR)


def _today() -> str:
    return key_of(clock.now(), Grain.DAY)
