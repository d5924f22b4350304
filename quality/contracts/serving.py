"""Serving: statistics for the blog itself, in PostgreSQL; only if the deployment has a server."""

from planning.reach import SAME
from publish.contract import Contract, Read
from publish.writes import Serve
from quality.contracts import gold

DAILY_STATS = Contract(
    dataset="serving.daily_stats",
    description="The page and referral statistics of a day in PostgreSQL: of both datasets, or of neither",
    owner="team:analytics",
    columns=(),
    partitioning=gold.DAY,
    reads=(Read(dataset="gold.page_stats", reach=SAME), Read(dataset="gold.referral_stats", reach=SAME)),
    write=Serve(schema="serving"),
    patterns=("Transactional Writer",),
)
