"""Live: what streams publish within seconds of landing; appended batch by batch, never replaced."""

from datetime import timedelta

from blogdata.contract.contract import Contract, Read
from blogdata.contract.watch import Lag, Watch
from blogdata.contract.writes import Append
from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.planning.reach import SAME
from quality.contracts import ads, landed, visits
from quality.contracts import columns as c
from quality.contracts.sessions import SESSIONS, SESSIONS_DAILY

BATCH = c.text(
    "batch",
    "Micro-batch the row came with: checkpoint and number, as in ops.stream_offsets",
    sourceless="one value for all rows of a batch",
)
LATE = "late"
LAG = Lag(within=timedelta(minutes=5))
"""How long landed files may wait to be read."""
COUNTED = ("occurrences", "conflicts")
"""Columns of silver.visits that a stream cannot have: a repeated event does not change a published row."""
OF_LOGS = ("crawler", *(column.name for column in c.REQUEST))
"""Columns of bronze.visits that only lines of access logs have, which no stream reads."""

BRONZE = Contract(
    dataset="bronze.visits_live",
    description="Every landed line of visit events, as received and judged, within seconds of its landing",
    owner="team:platform",
    reads=(Read("landing.visits", SAME),),
    write=Append(stream="visits"),
    columns=(*(column for column in visits.RECEIVED.columns if column.name not in OF_LOGS), BATCH),
    partitioning=landed.ARRIVAL,
    rows_in="lines of each file the checkpoint lists for the batch, counted without Spark; their bytes too",
    left_out={"taken_in_before": "under an earlier checkpoint", **landed.ERASED},
    rules=visits.RECEIVED.rules,
    measures=visits.RECEIVED.measures,
    breakdowns=visits.RECEIVED.breakdowns,
    statistics=("source_offset", "event_hour", "batch"),
    patterns=("Checkpointer", "Dead-Letter", "Audit-Write-Audit-Publish"),
    watch=Watch(lag=LAG),
)
VISITS = Contract(
    dataset="silver.visits_live",
    description="Visit events of the stream: each once, as far as the watermark lets it be told",
    owner="team:analytics",
    reads=(Read("landing.visits", SAME),),
    write=Append(stream="visits"),
    columns=(*(column for column in visits.EVENT_COLUMNS if column.name not in COUNTED), BATCH),
    key=visits.VISITS.key,
    partitioning=visits.EVENT,
    rows_in="visit events of the batch, counted before they are judged",
    left_out={
        Verdict.DUPLICATE.value: "received twice",
        Verdict.CONFLICT.value: "received twice, with another payload",
        LATE: "behind the watermark; bronze.visits_live has them, and silver.visits",
        **landed.TAKEN_OUT,
    },
    rules=tuple(rule for rule in visits.VISITS.rules if rule.name != "stands_for_itself"),
    statistics=("event_time", "page", "batch"),
    patterns=("Checkpointer", "Windowed Deduplicator", "Late Data Detector", "Audit-Write-Audit-Publish"),
)
WITH_ADS_LIVE = Contract(
    dataset="silver.visits_with_ads_live",
    description="Visit events that name an ad and displayed ads, as the stream joins them: pairs at once, and those "
    "alone when no partner can come any more",
    owner="team:analytics",
    reads=(Read("landing.visits", SAME), Read("landing.ads", SAME)),
    write=Append(stream="ads"),
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
        **landed.TAKEN_OUT,
    },
    statistics=("ad_id", "display_time", "batch"),
    patterns=("Checkpointer", "Dynamic Joiner", "Windowed Deduplicator", "Audit-Write-Audit-Publish"),
    watch=Watch(lag=LAG),
)
SESSIONS_LIVE = Contract(
    dataset="silver.sessions_live",
    description="Completed sessions of visitors, as the stream finds them: each once, when no page view of it can come "
    "any more; the same rows as the completed ones of silver.sessions",
    owner="team:analytics",
    reads=(Read("landing.visits", SAME),),
    write=Append(stream="sessions"),
    columns=(*SESSIONS.columns, BATCH),
    key=SESSIONS.key,
    partitioning=SESSIONS.partitioning,
    rules=SESSIONS.rules,
    rows_in="lines of the sessions that the batch let go of, and those that came too late for one",
    stands_for="sum(pages)",
    reasons={"aggregated": "sum(pages) - count(1)"},
    left_out={
        "aggregated": "the sum of `pages` less the number of sessions",
        Verdict.DUPLICATE.value: "lines that were received twice; those of sessions published before",
        Verdict.CONFLICT.value: "the same, with another payload; those of sessions published before with other rows",
        LATE: "page views behind the watermark; read again from the batch's files",
        **landed.TAKEN_OUT,
    },
    measures={"private": "count_if(keep_private)"},
    profiled=SESSIONS_DAILY.profiled,
    statistics=("ended_at", "batch"),
    paths=SESSIONS.paths,
    patterns=("Checkpointer", "Stateful Sessionizer", "Keyed Idempotency", "Audit-Write-Audit-Publish"),
    watch=Watch(lag=LAG),
)
