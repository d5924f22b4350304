"""Bronze: what arrived, as it arrived, by hour of arrival or day of load."""

from datetime import timedelta

from blogdata.planning.reach import SAME, Landed
from blogdata.publish.contract import Contract, Read
from blogdata.publish.partitions import Grain
from blogdata.publish.schema import Column, Partitioning, RowRule
from blogdata.publish.watch import Flow, Lag, Layer, Skew, Sla, Watch
from blogdata.publish.writes import Copy
from quality.contracts import columns as c
from quality.contracts import landed

ARRIVAL = Partitioning(column="arrival_hour", grain=Grain.HOUR)
LOAD = Partitioning(column="load_date", grain=Grain.DAY)
BYTES = "sum(length(raw) + 1)"
LANDED_LINES = "lines of each landed file, counted by a second reader; their bytes too"

POSITION_IS_REAL = RowRule(
    name="position_is_real",
    expression="source_offset >= 0",
    description="The line can be found again",
)
HAS_A_REASON = RowRule(
    name="has_a_reason",
    expression="size(reasons) > 0",
    description="Nothing is rejected without a reason",
)

VISITS = Contract(
    dataset="bronze.visits",
    description="Every line that was landed, visit event or access log line, as received",
    owner="team:platform",
    reads=(Read(dataset="landing.visits", reach=Landed(table="visits", grain=Grain.HOUR), fields=landed.VISIT),),
    columns=(
        c.RAW,
        *c.SOURCE,
        c.ARRIVAL_HOUR,
        c.FORMAT,
        Column(name="event_time", type="TIMESTAMP", description="When the event happened; null when rejected"),
        c.optional(c.EVENT_HOUR),
        c.REASONS,
        Column(
            name="crawler",
            type="STRING",
            description="Category of the crawler that sent the request, by its user agent; null for a person's",
        ),
        Column(
            name="filtered_by",
            type="STRING",
            description="Name of the filter that removes a valid row, else null",
        ),
    ),
    partitioning=ARRIVAL,
    rows_in=LANDED_LINES,
    rules=(
        RowRule(
            name="known_format",
            expression="format RLIKE '^[a-z][a-z0-9_]*$'",
            description="The line has the name of a format",
        ),
        RowRule(
            name="judged",
            expression="(size(reasons) = 0) = (event_hour IS NOT NULL)",
            description="A row is either rejected with a reason or belongs to an event hour",
        ),
        POSITION_IS_REAL,
    ),
    measures={
        "bytes": BYTES,
        "dead": "count_if(size(reasons) > 0)",
        "visits": "count_if(size(reasons) = 0 and filtered_by is null)",
        "filtered": "count_if(size(reasons) = 0 and filtered_by is not null)",
        "max_event_time": "max(case when filtered_by is null then event_time end)",
    },
    breakdowns={
        "event_hours": ("event_hour", "filtered_by", "format"),
        "reasons": ("explode(reasons)",),
    },
    statistics=("source_offset", "event_hour", "format"),
    patterns=(
        "Readiness Marker",
        "Dead-Letter",
        "Filter Interceptor",
        "Horizontal Partitioner",
        "Metadata Enhancer",
        "Schema Compatibility Enforcer",
    ),
    freshness_hours=1,
    watch=Watch(flow=Flow(layer=Layer.STORAGE), skew=Skew(), lag=Lag(), sla=Sla()),
)

DEAD_LETTERS = Contract(
    dataset="bronze.dead_letters",
    description="Landed lines that are not usable, each with all its reasons and its place",
    owner="team:platform",
    reads=(Read(dataset="bronze.visits", reach=SAME),),
    columns=(
        c.RAW,
        *c.SOURCE,
        c.ARRIVAL_HOUR,
        c.FORMAT,
        c.REASONS,
        Column(
            name="replay",
            type="BOOLEAN",
            nullable=False,
            description="The line came in by a replay of dead letters",
        ),
    ),
    key=("source_file", "source_offset"),
    partitioning=ARRIVAL,
    rows_in="rows of `bronze.visits` of the hour of arrival",
    left_out={"usable": ""},
    rules=(HAS_A_REASON,),
    max_share=0.75,
    statistics=("source_offset",),
    patterns=("Dead-Letter",),
    freshness_hours=1,
    watch=Watch(lag=Lag(), sla=Sla()),
)

USERS = Contract(
    dataset="bronze.users",
    description="The users as delivered each day, one full snapshot a day",
    owner="team:platform",
    reads=(Read(dataset="landing.users", reach=Landed(table="users", grain=Grain.DAY), fields=landed.USER),),
    columns=(
        c.RAW,
        *c.SOURCE,
        c.LOAD_DATE,
        Column(name="id", type="STRING", description="The user"),
        *c.USER,
        c.REASONS,
    ),
    partitioning=LOAD,
    rows_in=LANDED_LINES,
    rules=(
        RowRule(
            name="judged",
            expression="size(reasons) > 0 OR id IS NOT NULL",
            description="A row is rejected with a reason or names a user",
        ),
    ),
    measures={"bytes": BYTES, "dead": "count_if(size(reasons) > 0)"},
    breakdowns={"reasons": ("explode(reasons)",)},
    statistics=("id",),
    patterns=("Readiness Marker", "Dead-Letter"),
    freshness_hours=24,
    watch=Watch(flow=Flow(layer=Layer.STORAGE, every=timedelta(days=2)), skew=Skew(), lag=Lag(), sla=Sla()),
)

DEVICES = Contract(
    dataset="bronze.devices",
    description="The devices as last delivered, the whole reference table; earlier deliveries are kept as they were",
    owner="team:platform",
    reads=(Read(dataset="landing.devices", reach=Landed(table="devices", grain=Grain.DAY), fields=landed.DEVICE),),
    write=Copy(),
    rows_in=LANDED_LINES,
    columns=(
        c.RAW,
        *c.SOURCE,
        c.LOAD_DATE,
        Column(name="type", type="STRING", description="Device type"),
        Column(name="full_name", type="STRING", description="Name for people"),
        Column(name="version", type="STRING", description="Device version"),
        c.REASONS,
    ),
    rules=(
        RowRule(
            name="judged",
            expression="size(reasons) > 0 OR (type IS NOT NULL AND version IS NOT NULL)",
            description="A row is rejected with a reason or names a device",
        ),
    ),
    measures={"bytes": BYTES, "dead": "count_if(size(reasons) > 0)", "load_date": "max(load_date)"},
    breakdowns={"reasons": ("explode(reasons)",)},
    statistics=("type", "version"),
    patterns=("Full Loader", "Readiness Marker", "Dead-Letter", "Proxy"),
    freshness_hours=24,
    watch=Watch(lag=Lag()),
)
