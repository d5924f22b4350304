"""Which tables of a database are due to be loaded, and their loads: whole (Full Loader), or by windows of time
(Incremental Loader)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blogdata.durable.whole_file import write_atomically
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.patterns.ingestion.time_partitions import Partitions
from blogdata.planning import clock
from blogdata.planning.reach import delivered_on
from blogdata.publish.partitions import Grain, key_of, previous, start_of
from blogdata.services import postgres, postgres_connection, secrets
from blogdata.services.postgres_connection import Address
from blogdata.suppression.entry import erase_known
from quality.contracts import landed

if TYPE_CHECKING:
    import psycopg

    from blogdata.evidence.events import EventLog
    from blogdata.services.config import Settings

DEVICES, LEGACY_VISITS, PROVIDER_VISITS = "devices", "legacy_visits", "provider_visits"
READERS = {DEVICES: "bronze.devices", LEGACY_VISITS: "bronze.visits", PROVIDER_VISITS: "bronze.visits"}
"""Table to the dataset that reads what it lands."""


def due(settings: Settings, events: EventLog) -> list[str]:
    """List the tables of a deployment that have something to load.

    Devices are due if today's state is neither published nor delivered otherwise: a delivery that was refused is loaded
    again, in case the table was mended meanwhile. Visits of a table are due if an hour has ended since the last load,
    those of a provider if an hour is complete that has not landed.

    Args:
        settings: The deployment.
        events: Its event log.
    """
    tables, found = settings.tables, []
    if tables.devices is not None:
        published = events.publications(READERS[DEVICES]).get(WHOLE_TABLE)
        if published is None or delivered_on(published) < _today():
            found.append(DEVICES)
    if tables.legacy_visits is not None and (_loaded_until(settings) or "") < _last_hour():
        found.append(LEGACY_VISITS)
    if tables.provider_visits is not None and _provided(settings).new():
        found.append(PROVIDER_VISITS)
    return found


def load(settings: Settings, table: str) -> dict[str, Any]:
    """Load what is due of a table.

    Args:
        settings: A deployment that names the table.
        table: One of :data:`READERS`.

    Returns:
        Metadata of the load.

    Raises:
        PlatformError: As of the patterns' loads, and of the connection.
    """
    if table == DEVICES:
        return load_devices(settings)
    if table == PROVIDER_VISITS:
        return load_provided(settings, _provided(settings).new())
    until, last = _loaded_until(settings), _last_hour()
    begin = f"{settings.tables.since}T00"
    again = start_of(until, Grain.HOUR) - timedelta(seconds=settings.tables.overlap) if until else None
    found = load_hours(settings, [max(begin, key_of(again, Grain.HOUR)) if again else begin, last])
    write_atomically(_progress(settings), last.encode())
    return found


def load_devices(settings: Settings) -> dict[str, Any]:
    """Load the devices as they are now, as today's delivery; arguments, result and errors as of :func:`load`."""
    from blogdata.patterns.ingestion import full_loader

    assert settings.tables.devices is not None
    folder = settings.landing / "devices" / f"date={_today()}"
    with _connected(settings) as connection:
        loaded = full_loader.land(
            connection,
            settings.tables.devices,
            landed.DEVICE,
            folder,
            settings.landing,
            prepare=_without_forgotten(settings),
        )
    return {
        "table": settings.tables.devices,
        "day": _today(),
        "rows": loaded.rows,
        "bytes": loaded.file.stat().st_size,
        "changed": loaded.changed,
    }


def load_hours(settings: Settings, hours: Sequence[str]) -> dict[str, Any]:
    """Load the visits of the windows from the first to the last of some hours, and no other ones.

    Args:
        settings: A deployment that names a table of visits.
        hours: Hours of ingestion, in order.

    Returns:
        Metadata of the load.

    Raises:
        PlatformError: As of :func:`load`.
    """
    from assets.transforms.legacy_visits import DELTA, KEY, PREFIX, SHAPE
    from blogdata.patterns.ingestion import incremental_loader

    assert settings.tables.legacy_visits is not None
    table = incremental_loader.DeltaTable(
        name=settings.tables.legacy_visits,
        delta=DELTA,
        key=KEY,
        announced=landed.LEGACY_VISIT,
        shape=SHAPE,
        prefix=PREFIX,
        grain=Grain.HOUR,
    )
    with _connected(settings) as connection:
        found = incremental_loader.load(
            connection,
            table,
            settings.landing / "visits",
            hours[0],
            hours[-1],
            now=clock.now(),
            untimed_in=_last_hour(),
            prepare=_without_forgotten(settings),
        )
    return {
        "table": table.name,
        "windows": f"{hours[0]}..{hours[-1]}",
        "rows": sum(found.rows.values()),
        "new": sum(found.new.values()),
        "without a usable time": found.rows.get(incremental_loader.UNTIMED, 0),
        "moved to a later hour": found.moved,
        "hard deletes, unseen": found.unseen,
    }


def load_provided(settings: Settings, hours: Sequence[str]) -> dict[str, Any]:
    """Land a provider's files of some hours, and of no other ones; arguments and result as of :func:`load_hours`."""
    found = _provided(settings).load(hours, prepare=_without_forgotten(settings))
    return {"hours": len(found), "files": sum(found.values())}


def _provided(settings: Settings) -> Partitions:
    assert settings.tables.provider_visits is not None
    return Partitions(
        source=settings.tables.provider_visits, landed=settings.landing / "visits", prefix=PROVIDER_VISITS
    )


@contextmanager
def _connected(settings: Settings) -> Iterator[psycopg.Connection]:
    with postgres_connection.connected(_address(settings)) as connection:
        yield connection


def _without_forgotten(settings: Settings) -> Callable[[Path], object]:
    return lambda file: erase_known(settings, settings.landing, [file])


def _address(settings: Settings) -> Address:
    if settings.tables.url is None:
        return postgres.running_address(settings)
    name = settings.tables.secret
    return Address(url=settings.tables.url, password=secrets.pointer(settings, name) if name else None)


def _loaded_until(settings: Settings) -> str | None:
    """Return the last hour up to which visits were loaded; without it they are compared with all that has landed."""
    file = _progress(settings)
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _progress(settings: Settings) -> Path:
    # Beside the files that it tells of: a copy of the landing zone has it, too.
    return settings.landing / "visits" / ".legacy_visits"


def _last_hour() -> str:
    return previous(key_of(clock.now(), Grain.HOUR), Grain.HOUR)


def _today() -> str:
    return key_of(clock.now(), Grain.DAY)
