"""Live: lines of access logs within seconds of landing, and their page views; appended batch by batch, never replaced.

The batch datasets remain the authority: they alone tell which visit a page view belongs to, and who a visitor is.
"""

from dataclasses import replace

from blogdata.patterns.ingestion.landed_lines import REPLAY_PREFIX
from blogdata.planning.reach import SAME
from blogdata.publish.contract import Contract, Read
from blogdata.publish.schema import RowRule
from blogdata.publish.writes import Append
from quality.contracts import columns as c
from quality.contracts import landed, live, visits
from quality.contracts.live import BATCH, JUDGED_BY

WRITTEN = Append(stream="logs")
SOURCE = "access logs"
"""Name of the source in the watermark; `access logs/LOG` where the contract combines the logs of several servers."""
OF_AGENT = "looked up by the user agent, in a table of the agents of the batch"

LINES = replace(
    live.BRONZE,
    dataset="bronze.log_lines_live",
    description="Every landed line of access logs, as received and judged, within seconds of its landing",
    write=WRITTEN,
    columns=(*visits.RECEIVED.columns, BATCH),
    patterns=("Checkpointer", "Dead-Letter", "Filter Interceptor", "Audit-Write-Audit-Publish"),
)
VIEWS = Contract(
    dataset="silver.log_views_live",
    description="Page views of access logs, within seconds of their landing; silver.visits tells the visit of each, "
    "and its visitor",
    owner="team:analytics",
    reads=(Read(dataset=LINES.dataset, reach=SAME),),
    write=WRITTEN,
    columns=(
        c.EVENT_HOUR,
        c.VISIT[1],
        replace(
            c.VISIT[3],
            description="Always true: visitors of access logs were not asked",
            sourceless="the same for all lines of access logs",
        ),
        c.VISIT[4],
        c.UTM,
        c.fact(name="referral", type="STRING", description="Host that the visitor came from"),
        *(replace(column, sourceless=OF_AGENT) for column in c.CONTEXT if column.name != "network_type"),
        c.fact(
            name="late",
            type="BOOLEAN",
            nullable=False,
            description="The line came behind the watermark; it counts like any other",
        ),
        JUDGED_BY,
        c.RAW,
        visits.ARRIVED,
        *c.SOURCE,
        c.FORMAT,
        replace(BATCH, sourceless=None),
    ),
    key=("source_file", "source_offset"),
    partitioning=visits.EVENT,
    rules=(
        visits.IN_ITS_HOUR,
        RowRule(
            name="late_is_behind",
            expression="late = (coalesce(event_time < watermark, false)"
            f" AND source_file NOT LIKE '%/{REPLAY_PREFIX}%')",
            description="Late rows, and only those, are behind the watermark; corrections may be, and are not late",
        ),
    ),
    rows_in="lines of the batch that are not rejected, by the commit of its lines",
    left_out={"filtered.*": "by the name of the filter", **landed.TAKEN_OUT},
    measures={"late": "count_if(late)"},
    statistics=("event_time", "page", "batch"),
    patterns=("Checkpointer", "Filter Interceptor", "Late Data Detector", "Audit-Write-Audit-Publish"),
)
