"""Checks whether a deployment's database or partner lacks published data."""

from __future__ import annotations

from blogdata.contract.writes import Feed
from blogdata.errors import PlatformError
from blogdata.ledger.events import EventLog
from blogdata.operate import postgres, postgres_connection
from blogdata.operate.config import Settings
from blogdata.table.lake import Lake
from quality.contracts import SERVED


def configured(settings: Settings) -> tuple[str, ...]:
    """List the datasets that the deployment serves, by its settings."""
    feeds = {name for name, contract in SERVED.items() if isinstance(contract.write, Feed)}
    there = {True: settings.partner.url is not None, False: postgres.is_configured(settings)}
    return tuple(name for name in SERVED if there[name in feeds])


def is_behind(settings: Settings, events: EventLog) -> bool:
    """Return whether the database or the partner is behind; True if the database does not answer: the run says why."""
    from blogdata.deliver import partner, sinks, transactional_sink
    from blogdata.deliver.destinations import FEEDS, SINKS

    if any(partner.is_behind(settings, events, feed.source.dataset) for feed in FEEDS):
        return True
    if not postgres.is_configured(settings):
        return False
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
