"""Serving: what leaves the lake, for PostgreSQL and for a partner; each only if the deployment has the other side.

serving.daily_stats: the page and referral statistics of a day, together, in the blog's PostgreSQL.

serving.partner_feed: the events that may be shared, sent to the partner in the order of each visitor.
"""

from blogdata.deliver import partner, serving, sinks, transactional_sink
from blogdata.deliver.feeds import PartnerFeed
from blogdata.deliver.sinks import Sink
from blogdata.errors import PlatformError
from blogdata.ledger.events import EventLog
from blogdata.operate import postgres, postgres_connection
from blogdata.operate.config import Settings
from blogdata.table.lake import Lake
from quality.contracts import CONTRACTS
from quality.contracts.serving import DAILY_STATS, PARTNER_FEED

partner_feed = PartnerFeed(contract=PARTNER_FEED, source=CONTRACTS[PARTNER_FEED.reads[0].dataset])
daily_stats = Sink(contract=DAILY_STATS, served=[CONTRACTS[read.dataset] for read in DAILY_STATS.reads])


def configured(settings: Settings) -> list[Sink | PartnerFeed]:
    names = serving.configured(settings)
    return [served for served in (daily_stats, partner_feed) if served.contract.dataset in names]


def is_behind(settings: Settings, events: EventLog) -> bool:
    """Return whether the database or the partner is behind; True if the database does not answer: the run says why."""
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
