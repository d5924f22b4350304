"""Checks whether a deployment's database lacks published data."""

from __future__ import annotations

from errors import PlatformError
from evidence.events import EventLog
from lake.lake import Lake
from services import postgres, postgres_connection
from services.config import Settings


def is_behind(settings: Settings, events: EventLog) -> bool:
    """Return whether the database is behind; also True if it does not answer, so that the run reports why.

    Args:
        settings: Settings of the deployment, which has a database.
        events: The event log.
    """
    from assets.serving import SINKS
    from orchestration import sinks
    from patterns.idempotency import transactional_sink

    try:
        with postgres_connection.connected(postgres.running_address(settings)) as connection:
            return any(
                sinks.unserved(
                    Lake(root=str(settings.lake)),
                    events,
                    [contract.dataset for contract in sink.served],
                    transactional_sink.served(connection, sink.schema),
                )
                for sink in SINKS
            )
    except PlatformError:
        return True
