"""Live: visit events with what is known of them when they land; appended batch by batch, never replaced."""

from datetime import timedelta

from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.planning.reach import SAME, WHOLE
from blogdata.publish.contract import Contract, Read
from blogdata.publish.schema import Column
from blogdata.publish.watch import Lag, Watch
from blogdata.publish.writes import Append
from quality.contracts.columns import USER_QUASI
from quality.contracts.enriched import VISITS_ENRICHED
from quality.contracts.landed import TAKEN_OUT
from quality.contracts.live import BATCH, SLA

WRITTEN = Append(stream="enriched")
USERS_NOW = Read(dataset="silver.users_current", reach=WHOLE, optional=True)
USER_NOW = Column(
    name="user_changed_on",
    type="STRING",
    subject=USER_QUASI,
    description="Day of the delivery that last changed the user, when the stream took the event in (UTC); null if "
    "there was no such user then",
)

ENRICHED_LIVE = Contract(
    dataset="silver.visits_enriched_live",
    description="Visit events with the user, the device and the place as of the event, as far as they were known when "
    "the stream took the event in, and when the user last changed before that; silver.visits_enriched has what became "
    "known later",
    owner="team:analytics",
    # The hourly path decides when a new version of these tables makes rows stale; published rows of a stream stay.
    reads=(Read(dataset="landing.visits", reach=SAME), *VISITS_ENRICHED.reads[1:], USERS_NOW),
    write=WRITTEN,
    columns=(*VISITS_ENRICHED.columns, USER_NOW, BATCH),
    key=VISITS_ENRICHED.key,
    partitioning=VISITS_ENRICHED.partitioning,
    rules=VISITS_ENRICHED.rules,
    rows_in="visit events of the batch's files, counted before they are joined",
    left_out={
        Verdict.DUPLICATE.value: "received twice",
        Verdict.CONFLICT.value: "received twice, with another content",
        **TAKEN_OUT,
    },
    measures=VISITS_ENRICHED.measures,
    profiled=VISITS_ENRICHED.profiled,
    statistics=("event_time", "page", "batch"),
    patterns=("Checkpointer", "Static Joiner", "Windowed Deduplicator", "Audit-Write-Audit-Publish"),
    watch=Watch(lag=Lag(within=timedelta(minutes=5)), sla=SLA),
)
