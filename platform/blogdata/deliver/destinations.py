"""Serving: what leaves the lake, for PostgreSQL and for a partner; each only if the deployment has the other side.

serving.daily_stats: the page and referral statistics of a day, together, in the blog's PostgreSQL.

serving.partner_feed: the events that may be shared, sent to the partner in the order of each visitor.
"""

from blogdata.deliver import unserved
from blogdata.deliver.feeds import PartnerFeed
from blogdata.deliver.sinks import Sink
from blogdata.operate.config import Settings
from quality.contracts import CONTRACTS
from quality.contracts.serving import DAILY_STATS, PARTNER_FEED

partner_feed = PartnerFeed(contract=PARTNER_FEED, source=CONTRACTS[PARTNER_FEED.reads[0].dataset])
daily_stats = Sink(contract=DAILY_STATS, served=[CONTRACTS[read.dataset] for read in DAILY_STATS.reads])


def configured(settings: Settings) -> list[Sink | PartnerFeed]:
    names = unserved.configured(settings)
    return [served for served in (daily_stats, partner_feed) if served.contract.dataset in names]
