"""Live: what the stream of visits ingests within seconds of landing; appended batch by batch, never replaced."""

from dataclasses import replace
from datetime import timedelta

from blogdata.patterns.error_management.dead_letter import Tolerance
from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.patterns.ingestion.landed_lines import REPLAY_PREFIX
from blogdata.patterns.quality.online_observer import observed
from blogdata.planning.reach import SAME
from blogdata.publish.contract import Contract, Read
from blogdata.publish.schema import RowRule
from blogdata.publish.watch import Flow, Lag, Layer, StreamSla, Watch
from blogdata.publish.writes import Append
from quality.contracts import columns as c
from quality.contracts import landed, visits

BATCH = c.fact(
    name="batch",
    type="STRING",
    nullable=False,
    description="Micro-batch the row came with: checkpoint and number, as in ops.stream_offsets",
    sourceless="one value for all rows of a batch",
)
JUDGED_BY = c.fact(
    name="watermark",
    type="TIMESTAMP",
    description="Watermark the row was judged by; null: none yet",
    sourceless="from the accounts of earlier batches",
)
LATE = "late"
WRITTEN = Append(stream="visits")
SLA = StreamSla(after_landing=timedelta(minutes=5), after_hour=timedelta(hours=1))
"""What is promised to those who read what streams publish."""
EVENTS = "visit events of the batch, by the commit of its lines"
REASONS = (Verdict.DUPLICATE.value, Verdict.CONFLICT.value, LATE)
COUNTED = ("occurrences", "conflicts")
"""Columns of silver.visits that a stream cannot have: a repeated event does not change a published row."""
ONE_FORMAT = {"format": "visit events only", "filtered_by": "null: the filters judge lines of access logs"}

BRONZE = Contract(
    dataset="bronze.visits_live",
    description="Every landed line of visit events, as received and judged, within seconds of its landing",
    owner="team:platform",
    reads=(Read(dataset="landing.visits", reach=SAME),),
    write=WRITTEN,
    columns=(
        *(
            replace(each, sourceless=ONE_FORMAT.get(each.name))
            for each in visits.RECEIVED.columns
            if each.name != "crawler"
        ),
        BATCH,
    ),
    partitioning=landed.ARRIVAL,
    rows_in="lines of each file the checkpoint lists for the batch, counted by a second reader; their bytes too",
    left_out={"taken_in_before": "under an earlier checkpoint", **landed.ERASED},
    rules=visits.RECEIVED.rules,
    measures=visits.RECEIVED.measures,
    breakdowns=visits.RECEIVED.breakdowns,
    statistics=("source_offset", "event_hour", "batch"),
    patterns=("Checkpointer", "Dead-Letter", "Audit-Write-Audit-Publish"),
    watch=Watch(flow=Flow(layer=Layer.STORAGE), lag=Lag(within=timedelta(minutes=5))),
)
SET_ASIDE = Contract(
    dataset="silver.visits_live_aside",
    description="Visit events that the stream set aside: late ones, repeated ones, and repeated ones that differ",
    owner="team:analytics",
    reads=(Read(dataset="bronze.visits_live", reach=SAME),),
    write=WRITTEN,
    columns=(
        c.EVENT_HOUR,
        *c.VISIT[:2],
        c.VISIT[4],
        c.fact(
            name="reason",
            type="STRING",
            nullable=False,
            description="late (behind the watermark), duplicate, or conflict (same identity, another payload)",
        ),
        JUDGED_BY,
        c.RAW,
        visits.ARRIVED,
        *c.SOURCE,
        BATCH,
    ),
    key=("source_file", "source_offset"),
    partitioning=visits.EVENT,
    rules=(
        visits.IN_ITS_HOUR,
        RowRule(
            name="known_reason",
            expression="reason IN ({})".format(", ".join(f"'{reason}'" for reason in REASONS)),
            description="It is said why the row was set aside",
        ),
        RowRule(
            name="late_is_behind",
            expression=f"(reason = '{LATE}') = coalesce(event_time < watermark, false)"
            f" OR source_file LIKE '%/{REPLAY_PREFIX}%'",
            description="Late rows, and only those, are behind the watermark; corrections may be, and are not late",
        ),
    ),
    rows_in=EVENTS,
    left_out={"first": "counted by the rows that stay", **landed.TAKEN_OUT},
    breakdowns={"reasons": ("reason",)},
    statistics=("event_time", "batch"),
    patterns=("Checkpointer", "Windowed Deduplicator", "Late Data Detector"),
)
VISITS = observed(
    Contract(
        dataset="silver.visits_live",
        description="Visit events of the stream: each once, as far as the watermark lets it be told",
        owner="team:analytics",
        reads=(
            Read(dataset="bronze.visits_live", reach=SAME),
            Read(dataset="silver.visits_live_aside", reach=SAME, columns=()),
        ),
        write=WRITTEN,
        columns=(*(column for column in visits.WHOLE_VISITS.columns if column.name not in COUNTED), BATCH),
        key=visits.VISITS.key,
        partitioning=visits.EVENT,
        rows_in=EVENTS,
        left_out={**dict.fromkeys(REASONS, "set aside"), **landed.TAKEN_OUT},
        rules=tuple(rule for rule in visits.VISITS.rules if rule.name != "stands_for_itself"),
        statistics=("event_time", "page", "batch"),
        patterns=(
            "Checkpointer",
            "Windowed Deduplicator",
            "Late Data Detector",
            "Audit-Write-Audit-Publish",
            "Online Observer",
        ),
        watch=Watch(sla=SLA),
    )
)
TOLERANCE = Tolerance(max_share=visits.DEAD_LETTERS.max_share or 1.0, over_rows=1000)
"""Allowed share of dead letters: that of an hour in bronze, measured over the newest thousand lines."""
