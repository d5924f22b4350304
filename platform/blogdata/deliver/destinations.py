"""Serving: what leaves the lake, for PostgreSQL and for a partner; each only if the deployment has the other side.

serving.daily_stats: the page and referral statistics of a day, together, in the blog's PostgreSQL.

serving.partner_feed: the events that may be shared, sent to the partner in the order of each visitor.
"""

from blogdata.deliver.feeds import PartnerFeed
from blogdata.deliver.sinks import Sink
from blogdata.operate import postgres
from blogdata.operate.config import Settings
from quality.contracts import CONTRACTS
from quality.contracts.serving import DAILY_STATS, PARTNER_FEED

partner_feed = PartnerFeed(contract=PARTNER_FEED, source=CONTRACTS[PARTNER_FEED.reads[0].dataset])


daily_stats = Sink(contract=DAILY_STATS, served=[CONTRACTS[read.dataset] for read in DAILY_STATS.reads])


SINKS = (daily_stats,)
FEEDS = (partner_feed,)


def configured(settings: Settings) -> list[Sink | PartnerFeed]:
    return [
        *(SINKS if postgres.is_configured(settings) else ()),
        *(FEEDS if settings.partner.url is not None else ()),
    ]
