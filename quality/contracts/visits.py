"""Visits: the lines that were landed, those that are unusable, the events in them, each once, and which came late."""

from datetime import timedelta

from blogdata.contract.contract import LEAST_ROWS, Contract, Read
from blogdata.contract.partitions import Grain
from blogdata.contract.schedule import Runs
from blogdata.contract.schema import Audit, Failed, Partitioning, Reference, RowRule
from blogdata.contract.watch import Flow, Lag, Layer, Skew, Sla, Watch
from blogdata.contract.writes import AppearsWith, Replace, Slices
from blogdata.patterns.error_management.late_data_detector import Strategy
from blogdata.patterns.quality.online_observer import observed
from blogdata.patterns.storage.vertical_partitioner import split
from blogdata.planning.reach import SAME, EventsOf, Landed, Outdated, Watermarked
from quality.contracts import columns as c
from quality.contracts import landed
from quality.contracts.landed import ARRIVAL, BYTES, ERASED, LANDED_LINES, POSITION_IS_REAL

EVENT = Partitioning(column="event_hour", grain=Grain.HOUR)
IN_ITS_HOUR = RowRule(
    "in_its_hour",
    "event_hour = date_format(event_time, \"yyyy-MM-dd'T'HH\")",
    "A row lies in the partition of its event time",
)
IDENTIFIED = RowRule(
    "identified",
    " AND ".join(c.filled(name) for name in c.IDENTIFIERS),
    "Identifiers are not blank; bronze rejects those that are",
)
STANDS_FOR_ITSELF = RowRule(
    "stands_for_itself", "occurrences >= 1 AND conflicts < occurrences", "A row stands for at least itself"
)
STANDS_FOR = (
    c.count("occurrences", "Received rows it stands for, itself included"),
    c.count("conflicts", "Of these, rows with another payload"),
)
FEW_CONFLICTS = Audit(
    "few_conflicts",
    f"count(1) < {LEAST_ROWS} OR sum(conflicts) <= 0.05 * sum(occurrences)",
    "At most one received event in twenty differs from the first one of the same identity",
    failed=Failed.WARNS,
)
BOUNDED_DUPLICATES = Audit(
    "bounded_duplicates", "sum(occurrences) <= 10 * count(1)", "A producer that repeats everything ten times is broken"
)
FOUND = (
    *(c.optional(column) for column in c.VISIT if column.name != "event_time"),
    c.UTM,
    *c.CONTEXT,
    *c.IDENTITY,
    *c.REQUEST,
)
"""What is found in a usable line, whatever its format."""
ARRIVED = c.text("arrival_hour", "Hour in which the row arrived (UTC)")
EVENT_COLUMNS = (
    c.EVENT_HOUR,
    *c.VISIT,
    c.UTM,
    *c.CONTEXT,
    *c.IDENTITY,
    *STANDS_FOR,
    c.RAW,
    ARRIVED,
    *c.SOURCE,
    c.FORMAT,
)

RECEIVED = Contract(
    dataset="bronze.visits",
    description="Every line that was landed, visit event or access log line, as received",
    owner="team:platform",
    reads=(
        Read(
            "landing.visits", Landed(table="visits", grain=Grain.HOUR), fields=(*landed.VISIT, *landed.OF_LEGACY_VISITS)
        ),
    ),
    columns=(
        c.RAW,
        *c.SOURCE,
        c.ARRIVAL_HOUR,
        c.FORMAT,
        c.fact("event_time", "When the event happened; null when rejected", type="TIMESTAMP"),
        c.optional(c.EVENT_HOUR),
        c.REASONS,
        c.optional_text(
            "crawler", "Category of the crawler that sent the request, by its user agent; null for a person's"
        ),
        c.optional_text("filtered_by", "Name of the filter that removes a valid row, else null"),
        *FOUND,
    ),
    partitioning=ARRIVAL,
    rows_in=LANDED_LINES,
    left_out=ERASED,
    rules=(
        RowRule("known_format", "format RLIKE '^[a-z][a-z0-9_]*$'", "The line has the name of a format"),
        RowRule(
            "judged",
            "(size(reasons) = 0) = (event_hour IS NOT NULL)",
            "A row is either rejected with a reason or belongs to an event hour",
        ),
        POSITION_IS_REAL,
    ),
    measures={
        "bytes": BYTES,
        "dead": "count_if(size(reasons) > 0)",
        "visits": "count_if(size(reasons) = 0 and filtered_by is null)",
        "filtered": "count_if(size(reasons) = 0 and filtered_by is not null)",
        **{
            name: f"max(case when filtered_by is null and format {which} 'json' then event_time end)"
            for name, which in (("max_event_time", "="), ("max_logged_time", "<>"))
        },
    },
    breakdowns={"event_hours": ("event_hour", "filtered_by", "format"), "reasons": ("explode(reasons)",)},
    statistics=("source_offset", "event_hour", "format"),
    patterns=(
        *("Readiness Marker", "Dead-Letter", "Filter Interceptor", "Horizontal Partitioner"),
        *("Wrapper", "Metadata Enhancer", "Schema Compatibility Enforcer", "In-Place Overwriter"),
    ),
    freshness_hours=1,
    watch=Watch(flow=Flow(layer=Layer.STORAGE), skew=Skew(), lag=Lag(), sla=Sla()),
)

DEAD_LETTERS = landed.dead_letters(
    dataset="bronze.dead_letters",
    description="Landed lines that are not usable, each with all its reasons and its place",
    reads=(Read("bronze.visits", SAME),),
    columns=(
        *(c.RAW, *c.SOURCE, c.ARRIVAL_HOUR, c.FORMAT, c.REASONS),
        c.flag("replay", "The line came in by a replay of dead letters"),
    ),
    rows_in="rows of `bronze.visits` of the hour of arrival",
)

VISITS = split(
    observed(
        Contract(
            dataset="silver.visits",
            description="Visit events: parsed, each once, with the place of the untouched line they came from",
            owner="team:analytics",
            reads=(
                Read("bronze.visits", EventsOf(breakdown="event_hours")),
                # Late rows of a log join or split visits of the hours around them.
                Read("silver.visits", Outdated(source="bronze.visits")),
            ),
            runs=Runs(judged_by="bronze.dead_letters"),
            write=Replace(slices=Slices(of="bronze.visits", column="arrival_hour")),
            columns=EVENT_COLUMNS,
            key=("visit_id", "event_time", "page"),
            partitioning=EVENT,
            rules=(
                IN_ITS_HOUR,
                IDENTIFIED,
                STANDS_FOR_ITSELF,
                RowRule("from_bronze", "source_offset >= 0", "The row can be found in bronze"),
            ),
            audits=(BOUNDED_DUPLICATES, FEW_CONFLICTS),
            rows_in="valid rows of all of `bronze.visits` whose event lies in the hour",
            stands_for="sum(occurrences)",
            reasons={"duplicates": "sum(occurrences - 1)"},
            left_out={"filtered.*": "by the name of the filter"},
            measures={"conflicts": "sum(conflicts)", "private": "count_if(keep_private)"},
            breakdowns={"visitors": ("cast(pmod(hash(user_id), 16) as string)",)},
            statistics=("event_time", "page"),
            patterns=(
                *("Windowed Deduplicator", "Keyed Idempotency", "Data Overwrite"),
                *("Transactional Writer", "Dynamic Late Data Integrator", "Audit-Write-Audit-Publish"),
                *("Constraints Enforcer", "Schema Compatibility Enforcer", "Online Observer"),
                *("Horizontal Partitioner", "Vertical Partitioner", "Metadata Enhancer"),
            ),
            freshness_hours=2,
            watch=Watch(
                flow=Flow(layer=Layer.DATA, event_time="event_time"),
                # An hour that has late rows of a neighbour only is no small hour: the volume is watched in bronze.
                skew=Skew(tolerance=None, among="visitors"),
                lag=Lag(),
                sla=Sla(),
            ),
        )
    ),
    (c.RAW.name,),
    of="bronze.visits",
    # The time finds no other line at that place: that of a file which was landed again.
    key=("arrival_hour", "source_file", "source_offset", "event_time"),
)

VISIT_CONFLICTS = landed.conflicts(
    dataset="silver.visit_conflicts",
    description="Events that lost to an earlier one with the same identity and another payload",
    reads=(Read("silver.visits", SAME),),
    write=AppearsWith(main="silver.visits"),
    columns=(c.EVENT_HOUR, *c.VISIT[:2], c.VISIT[4], c.RAW, ARRIVED, *c.SOURCE),
    partitioning=EVENT,
    references=(Reference("silver.visits", {name: name for name in VISITS.key}),),
    rows_in="duplicates of `silver.visits`, by the commit that publishes both",
    rules=(IN_ITS_HOUR,),
    statistics=("event_time",),
)

# The fastest: a blog may have only one of the two, and then the slowest would make nothing late, ever.
WATERMARK = Watermarked(
    allowed=timedelta(minutes=15),
    measures={"visits": "max_event_time", "access logs": "max_logged_time"},
    combined=Strategy.MAX,
)
LATE_VISITS = Contract(
    dataset="silver.late_visits",
    description="Visit events that arrived after the watermark, with how late they were",
    owner="team:analytics",
    reads=(Read("bronze.visits", WATERMARK),),
    columns=(
        c.ARRIVAL_HOUR,
        c.EVENT_HOUR,
        c.time("event_time", "When the page was opened"),
        c.flag("keep_private", "Whether the visitor asked not to be shared, if read", nullable=True),
        c.time("watermark", "Watermark when the row arrived", sourceless="from the measures of earlier hours"),
        c.measure("lateness_seconds", "How far behind the watermark", subject=c.VISITOR_QUASI),
        c.RAW,
        *c.SOURCE,
    ),
    key=("source_file", "source_offset"),
    partitioning=ARRIVAL,
    rows_in="visit events of the hour of arrival",
    left_out={"on_time": "counted by the rows that are not late"},
    rules=(RowRule("behind_watermark", "event_time < watermark", "Only late rows are captured"),),
    measures={"max_lateness_seconds": "max(lateness_seconds)"},
    references=(Reference("bronze.visits", {"source_file": "source_file", "source_offset": "source_offset"}),),
    profiled=("lateness_seconds",),
    breakdowns={"event_hours": ("event_hour",)},
    statistics=("event_hour", "event_time"),
    patterns=("Late Data Detector",),
)
