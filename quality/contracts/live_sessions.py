"""Live: sessions of visitors, each once when its time is over; appended batch by batch, never replaced."""

from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.planning.reach import SAME
from blogdata.publish.contract import Contract, Read
from blogdata.publish.watch import Watch
from blogdata.publish.writes import Append
from quality.contracts.landed import TAKEN_OUT
from quality.contracts.live import BATCH, LAG, LATE
from quality.contracts.sessions import SESSIONS, SESSIONS_DAILY

WRITTEN = Append(stream="sessions")

SESSIONS_LIVE = Contract(
    dataset="silver.sessions_live",
    description="Completed sessions of visitors, as the stream finds them: each once, when no page view of it can come "
    "any more; the same rows as the completed ones of silver.sessions",
    owner="team:analytics",
    reads=(Read(dataset="landing.visits", reach=SAME),),
    write=WRITTEN,
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
        **TAKEN_OUT,
    },
    measures={"private": "count_if(keep_private)"},
    profiled=SESSIONS_DAILY.profiled,
    statistics=("ended_at", "batch"),
    paths=SESSIONS.paths,
    patterns=("Checkpointer", "Stateful Sessionizer", "Keyed Idempotency", "Audit-Write-Audit-Publish"),
    watch=Watch(lag=LAG),
)
