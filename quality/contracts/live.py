"""Live: what the stream of visits ingests within seconds of landing; appended batch by batch, never replaced."""

from dataclasses import replace
from datetime import timedelta

from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.patterns.quality.online_observer import observed
from blogdata.planning.reach import SAME
from blogdata.publish.contract import Contract, Read
from blogdata.publish.watch import Flow, Lag, Layer, Watch
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
LATE = "late"
WRITTEN = Append(stream="visits")
LAG = Lag(within=timedelta(minutes=5))
"""How long landed files may wait to be read."""
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
    watch=Watch(flow=Flow(layer=Layer.STORAGE), lag=LAG),
)
VISITS = observed(
    Contract(
        dataset="silver.visits_live",
        description="Visit events of the stream: each once, as far as the watermark lets it be told",
        owner="team:analytics",
        reads=(Read(dataset="landing.visits", reach=SAME),),
        write=WRITTEN,
        columns=(*(column for column in visits.WHOLE_VISITS.columns if column.name not in COUNTED), BATCH),
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
        patterns=(
            "Checkpointer",
            "Windowed Deduplicator",
            "Late Data Detector",
            "Audit-Write-Audit-Publish",
            "Online Observer",
        ),
    )
)
