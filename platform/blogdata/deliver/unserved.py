"""Checks whether a deployment's database or partner lacks published data."""

from __future__ import annotations

from blogdata.errors import PlatformError
from blogdata.ledger.events import EventLog
from blogdata.operate import postgres, postgres_connection
from blogdata.operate.config import Settings
from blogdata.table.lake import Lake
from quality.contracts.serving import DAILY_STATS, PARTNER_FEED


def configured(settings: Settings) -> tuple[str, ...]:
    """List the datasets that the deployment serves, by its settings."""
    served = [DAILY_STATS] * postgres.is_configured(settings) + [PARTNER_FEED] * (settings.partner.url is not None)
    return tuple(contract.dataset for contract in served)


def is_behind(settings: Settings, events: EventLog) -> bool:
    """Return whether the database or the partner is behind; True if the database does not answer: the run says why."""
    from blogdata.deliver import partner, sinks, transactional_sink
    from blogdata.deliver.destinations import daily_stats, partner_feed

    if partner.is_behind(settings, events, partner_feed.source.dataset):
        return True
    if not postgres.is_configured(settings):
        return False
    try:
        with postgres_connection.connected(postgres.running_address(settings)) as connection:
            served = transactional_sink.served(connection, daily_stats.schema)
            datasets = [contract.dataset for contract in daily_stats.served]
            return bool(sinks.unserved(Lake(root=str(settings.lake)), events, datasets, served))
    except PlatformError:
        return True
