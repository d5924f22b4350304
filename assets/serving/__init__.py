"""Serving: what leaves the lake, for PostgreSQL and for a partner; each only if the deployment has the other side."""

from assets.serving.daily_stats import daily_stats
from assets.serving.partner_feed import partner_feed
from blogdata.orchestration.feeds import PartnerFeed
from blogdata.orchestration.sinks import Sink
from blogdata.services import postgres
from blogdata.services.config import Settings

SINKS = (daily_stats,)
FEEDS = (partner_feed,)


def configured(settings: Settings) -> list[Sink | PartnerFeed]:
    """List what the deployment serves, by its settings."""
    return [
        *(SINKS if postgres.is_configured(settings) else ()),
        *(FEEDS if settings.partner.url is not None else ()),
    ]
