"""Serving: statistics in PostgreSQL, and events for a partner; each only if the deployment has the other side."""

from blogdata.contract.contract import Contract, Read
from blogdata.contract.writes import Feed, Serve
from blogdata.planning.reach import SAME
from quality.contracts import page_views, visits

DAILY_STATS = Contract(
    dataset="serving.daily_stats",
    description="The page and referral statistics of a day in PostgreSQL: of both datasets, or of neither",
    owner="team:analytics",
    columns=(),
    partitioning=page_views.DAY,
    reads=(Read("gold.page_stats", SAME), Read("gold.referral_stats", SAME)),
    write=Serve(schema="serving"),
    patterns=("Transactional Writer", "Fine-Grained Accessor for Tables", "Secretless Connector"),
)

PARTNER_FEED = Contract(
    dataset="serving.partner_feed",
    description="The events of visitors who may be shared, sent to the partner with tokens for their ids: those of a "
    "visitor in order, each once, late ones as corrections",
    owner="team:analytics",
    columns=(),
    partitioning=visits.EVENT,
    reads=(Read("silver.visits", SAME),),
    write=Feed(
        key="user_id",
        at="event_time",
        identity=visits.VISITS.key,
        # Nothing personal; a referral may have anything in its query.
        payload=("visit_id", "event_time", "page", "ad_id", "browser", "device_type"),
        unless="keep_private",
        pseudonyms=("visit_id",),
    ),
    rows_in="rows of `silver.visits` of the hour",
    left_out={"private": "may not be shared", "waiting": "to be sent", "sending": "in a request without an answer"},
    patterns=("Bin Pack Orderer", "FIFO Orderer", "Pseudo-Anonymizer", "Secrets Pointer"),
)
