"""serving.partner_feed: the events that may be shared, sent to the partner in the order of each visitor."""

from blogdata.orchestration.feeds import PartnerFeed
from quality.contracts import CONTRACTS
from quality.contracts.serving import PARTNER_FEED

partner_feed = PartnerFeed(contract=PARTNER_FEED, source=CONTRACTS[PARTNER_FEED.reads[0].dataset])
