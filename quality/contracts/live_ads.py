"""Live: visit events and displayed ads, joined within seconds of landing; appended batch by batch, never replaced."""

from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.planning.reach import SAME
from blogdata.publish.contract import Contract, Read
from blogdata.publish.watch import Watch
from blogdata.publish.writes import Append
from quality.contracts import ads
from quality.contracts.landed import TAKEN_OUT
from quality.contracts.live import BATCH, LAG, LATE

WRITTEN = Append(stream="ads")

WITH_ADS_LIVE = Contract(
    dataset="silver.visits_with_ads_live",
    description="Visit events that name an ad and displayed ads, as the stream joins them: pairs at once, and those "
    "alone when no partner can come any more",
    owner="team:analytics",
    reads=(Read(dataset="landing.visits", reach=SAME), Read(dataset="landing.ads", reach=SAME)),
    write=WRITTEN,
    columns=(*ads.WITH_ADS.columns, BATCH),
    key=ads.WITH_ADS.key,
    partitioning=ads.WITH_ADS.partitioning,
    rules=ads.WITH_ADS.rules,
    rows_in="rows that the join let go of in the batch, and those that came too late for it",
    left_out={
        Verdict.DUPLICATE.value: "of a row published before, from a line that was received twice",
        Verdict.CONFLICT.value: "the same, with another payload; a pair of an event or display published alone, or "
        "reversely",
        LATE: "events that name an ad, and displays, behind the watermark; read again from the batch's files",
        **TAKEN_OUT,
    },
    statistics=("ad_id", "display_time", "batch"),
    patterns=("Checkpointer", "Dynamic Joiner", "Windowed Deduplicator", "Audit-Write-Audit-Publish"),
    watch=Watch(lag=LAG),
)
