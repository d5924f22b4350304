"""Which tables of a database are due to be loaded, and their load as a delivery of the day (Full Loader)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blogdata.lake.commit import WHOLE_TABLE
from blogdata.planning import clock
from blogdata.planning.reach import delivered_on
from blogdata.publish.partitions import Grain, key_of
from blogdata.services import postgres, postgres_connection, secrets
from blogdata.services.postgres_connection import Address
from blogdata.suppression.entry import erase_known
from quality.contracts import landed

if TYPE_CHECKING:
    from blogdata.evidence.events import EventLog
    from blogdata.services.config import Settings

READER = "bronze.devices"
"""The dataset that reads the delivery."""


def is_due(settings: Settings, events: EventLog) -> bool:
    """Return whether today's state of the devices is neither published nor delivered otherwise.

    A delivery that was refused is loaded again, in case the table was mended meanwhile.

    Args:
        settings: The deployment.
        events: Its event log.
    """
    if settings.tables.devices is None:
        return False
    published = events.publications(READER).get(WHOLE_TABLE)
    return published is None or delivered_on(published) < _today()


def load(settings: Settings) -> dict[str, Any]:
    """Load the devices as they are now, as today's delivery.

    Args:
        settings: A deployment that names a table of devices.

    Returns:
        Metadata of the load.

    Raises:
        PlatformError: As :func:`blogdata.patterns.ingestion.full_loader.land`, and of the connection.
    """
    from blogdata.patterns.ingestion import full_loader

    assert settings.tables.devices is not None
    folder = settings.landing / "devices" / f"date={_today()}"
    with postgres_connection.connected(_address(settings)) as connection:
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


def _without_forgotten(settings: Settings) -> Callable[[Path], object]:
    return lambda file: erase_known(settings, settings.landing, [file])


def _address(settings: Settings) -> Address:
    if settings.tables.url is None:
        return postgres.running_address(settings)
    name = settings.tables.secret
    return Address(url=settings.tables.url, password=secrets.pointer(settings, name) if name else None)


def _today() -> str:
    return key_of(clock.now(), Grain.DAY)
