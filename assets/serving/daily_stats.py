"""serving.daily_stats: the page and referral statistics of a day, together, in the blog's PostgreSQL."""

from blogdata.orchestration.sinks import Sink
from quality.contracts import CONTRACTS
from quality.contracts.serving import DAILY_STATS

daily_stats = Sink(contract=DAILY_STATS, served=[CONTRACTS[read.dataset] for read in DAILY_STATS.reads])
