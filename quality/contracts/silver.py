"""Silver: parsed, deduplicated and joined, by hour of the event."""

from datetime import timedelta

from blogdata.patterns.quality.online_observer import observed
from blogdata.planning.reach import SAME, WHOLE, EventsOf, InTurn, Outdated, Watermarked
from blogdata.publish.contract import LEAST_ROWS, Contract, Read, Runs
from blogdata.publish.partitions import Grain
from blogdata.publish.schema import Audit, Column, Failed, Partitioning, Reference, RowRule
from blogdata.publish.watch import Flow, Lag, Layer, Skew, Sla, Watch
from blogdata.publish.writes import AppearsWith, InOrder, Merge
from quality.contracts import columns as c
from quality.contracts.bronze import ARRIVAL

EVENT = Partitioning(column="event_hour", grain=Grain.HOUR)
IN_ITS_HOUR = RowRule(
    name="in_its_hour",
    expression="event_hour = date_format(event_time, \"yyyy-MM-dd'T'HH\")",
    description="A row lies in the partition of its event time",
)
IDENTIFIED = RowRule(
    name="identified",
    expression=" AND ".join(c.filled(name) for name in c.IDENTIFIERS),
    description="Identifiers are not blank; bronze rejects those that are",
)
STANDS_FOR_ITSELF = RowRule(
    name="stands_for_itself",
    expression="occurrences >= 1 AND conflicts < occurrences",
    description="A row stands for at least itself",
)
BOUNDED_DUPLICATES = Audit(
    name="bounded_duplicates",
    expression="sum(occurrences) <= 10 * count(1)",
    description="A producer that repeats everything ten times is broken",
)
ARRIVED = Column(name="arrival_hour", type="STRING", nullable=False, description="Hour in which the row arrived (UTC)")

VISITS = observed(
    Contract(
        dataset="silver.visits",
        description="Visit events: parsed, each once, beside the untouched line they came from",
        owner="team:analytics",
        reads=(
            Read(dataset="bronze.visits", reach=EventsOf(breakdown="event_hours")),
            # Late rows of a log join or split visits of the hours around them.
            Read(dataset="silver.visits", reach=Outdated(source="bronze.visits")),
        ),
        runs=Runs(judged_by="bronze.dead_letters"),
        columns=(
            c.EVENT_HOUR,
            *c.VISIT,
            c.UTM,
            *c.CONTEXT,
            *c.IDENTITY,
            Column(
                name="occurrences",
                type="BIGINT",
                nullable=False,
                description="Received rows it stands for, itself included",
            ),
            Column(
                name="conflicts",
                type="BIGINT",
                nullable=False,
                description="Of these, rows with another payload",
            ),
            c.RAW,
            ARRIVED,
            *c.SOURCE,
            c.FORMAT,
        ),
        key=("visit_id", "event_time", "page"),
        partitioning=EVENT,
        rules=(
            IN_ITS_HOUR,
            IDENTIFIED,
            STANDS_FOR_ITSELF,
            RowRule(
                name="from_bronze",
                expression="source_offset >= 0",
                description="The row can be found in bronze",
            ),
        ),
        audits=(
            BOUNDED_DUPLICATES,
            Audit(
                name="few_conflicts",
                expression=f"count(1) < {LEAST_ROWS} OR sum(conflicts) <= 0.05 * sum(occurrences)",
                description="At most one received event in twenty differs from the first one of the same identity",
                failed=Failed.WARNS,
            ),
        ),
        rows_in="valid rows of all of `bronze.visits` whose event lies in the hour",
        stands_for="sum(occurrences)",
        reasons={"duplicates": "sum(occurrences - 1)"},
        left_out={"filtered.*": "by the name of the filter"},
        measures={
            "conflicts": "sum(conflicts)",
            "private": "count_if(keep_private)",
        },
        breakdowns={"visitors": ("cast(pmod(hash(user_id), 16) as string)",)},
        statistics=("event_time", "user_id", "page"),
        patterns=(
            "Windowed Deduplicator",
            "Wrapper",
            "Keyed Idempotency",
            "Data Overwrite",
            "Transactional Writer",
            "Dynamic Late Data Integrator",
            "Audit-Write-Audit-Publish",
            "Constraints Enforcer",
            "Schema Compatibility Enforcer",
            "Online Observer",
            "Horizontal Partitioner",
            "Metadata Enhancer",
        ),
        freshness_hours=2,
        watch=Watch(
            flow=Flow(layer=Layer.DATA, event_time="event_time"),
            # An hour that has late rows of a neighbour only is no small hour: the volume is watched in bronze.
            skew=Skew(tolerance=None, among="visitors"),
            lag=Lag(),
            sla=Sla(),
        ),
    ),
    distinct=("user_id",),
)

VISIT_CONFLICTS = Contract(
    dataset="silver.visit_conflicts",
    description="Events that lost to an earlier one with the same identity and another payload",
    owner="team:analytics",
    reads=(Read(dataset="silver.visits", reach=SAME),),
    write=AppearsWith(main="silver.visits"),
    columns=(c.EVENT_HOUR, *c.VISIT[:2], c.VISIT[4], c.RAW, ARRIVED, *c.SOURCE),
    key=("source_file", "source_offset"),
    partitioning=EVENT,
    references=(Reference(dataset="silver.visits", columns={name: name for name in VISITS.key}),),
    rows_in="duplicates of `silver.visits`, by the commit that publishes both",
    left_out={"identical": ""},
    rules=(IN_ITS_HOUR,),
    statistics=("visit_id",),
    patterns=("Windowed Deduplicator", "Transactional Writer"),
)

WATERMARK = Watermarked(allowed=timedelta(minutes=15), measure="max_event_time")
LATE_VISITS = Contract(
    dataset="silver.late_visits",
    description="Visit events that arrived after the watermark, with how late they were",
    owner="team:analytics",
    reads=(Read(dataset="bronze.visits", reach=WATERMARK),),
    columns=(
        c.ARRIVAL_HOUR,
        c.EVENT_HOUR,
        Column(name="event_time", type="TIMESTAMP", nullable=False, description="When the page was opened"),
        Column(
            name="watermark",
            type="TIMESTAMP",
            nullable=False,
            description="Watermark when the row arrived",
            sourceless="from the measures of earlier hours",
        ),
        Column(name="lateness_seconds", type="DOUBLE", nullable=False, description="How far behind the watermark"),
        c.RAW,
        *c.SOURCE,
    ),
    key=("source_file", "source_offset"),
    partitioning=ARRIVAL,
    rows_in="visit events of the hour of arrival",
    left_out={"on_time": "counted by the rows that are not late"},
    rules=(
        RowRule(
            name="behind_watermark",
            expression="event_time < watermark",
            description="Only late rows are captured",
        ),
    ),
    measures={"max_lateness_seconds": "max(lateness_seconds)"},
    references=(
        Reference(dataset="bronze.visits", columns={"source_file": "source_file", "source_offset": "source_offset"}),
    ),
    profiled=("lateness_seconds",),
    breakdowns={"event_hours": ("event_hour",)},
    statistics=("event_hour", "event_time"),
    patterns=("Late Data Detector",),
)

USERS = Contract(
    dataset="silver.users",
    description="Users with their history: one row per version (SCD2), the current one marked",
    owner="team:analytics",
    reads=(Read(dataset="bronze.users", reach=WHOLE),),
    columns=(
        Column(name="user_id", type="STRING", nullable=False, description="The user; joins visits"),
        *c.USER,
        Column(
            name="valid_from",
            type="TIMESTAMP",
            nullable=False,
            description="First instant it holds: the day that delivered it, or the registration for the first delivery",
        ),
        Column(name="valid_to", type="TIMESTAMP", description="First instant it no longer holds; null when open"),
        Column(name="is_current", type="BOOLEAN", nullable=False, description="The version that holds now"),
        Column(
            name="snapshots",
            type="BIGINT",
            nullable=False,
            description="Delivered rows the version stands for",
        ),
    ),
    key=("user_id", "valid_from"),
    rules=(
        RowRule(
            name="valid_range",
            expression="valid_to IS NULL OR valid_from < valid_to",
            description="A version holds for some time",
        ),
        RowRule(
            name="current_is_open",
            expression="is_current = (valid_to IS NULL)",
            description="The current version is the open one",
        ),
    ),
    audits=(
        Audit(
            name="one_current_version",
            expression="count_if(is_current) = count(distinct case when is_current then user_id end)",
            description="No user has two current versions",
        ),
    ),
    stands_for="sum(snapshots)",
    reasons={"unchanged": "sum(snapshots - 1)"},
    left_out={"dead_lettered": ""},
    measures={"current": "count_if(is_current)"},
    statistics=("user_id", "valid_from"),
    patterns=("Audit-Write-Audit-Publish", "Data Overwrite"),
    freshness_hours=24,
    watch=Watch(lag=Lag()),
)

USERS_CURRENT = Contract(
    dataset="silver.users_current",
    description="Users as of the newest delivery, one row each",
    owner="team:analytics",
    reads=(
        Read(dataset="bronze.users", reach=SAME),
        Read(dataset="silver.users_current", reach=InTurn()),
    ),
    write=InOrder(period=Grain.DAY, replay_limit=30, marks_rows=True),
    columns=(
        Column(name="user_id", type="STRING", nullable=False, description="The user; joins visits"),
        *c.USER,
        Column(
            name="changed_on",
            type="STRING",
            nullable=False,
            description="Day of the delivery that made the row what it is (UTC)",
        ),
        Column(
            name="occurrences",
            type="BIGINT",
            nullable=False,
            description="Usable rows of the newest delivery it stands for; 0 when those of the user are dead letters",
        ),
    ),
    key=("user_id",),
    rules=(
        RowRule(
            name="delivered",
            expression="occurrences >= 0",
            description="A row stands for usable ones, or is kept for one that is not",
        ),
    ),
    rows_in="rows of the newest delivery",
    stands_for="sum(occurrences)",
    reasons={"duplicates": "sum(greatest(occurrences - 1, 0))", "kept": "-count_if(occurrences = 0)"},
    left_out={
        "dead_lettered": "",
        # These rows count as rows out but not as rows in.
        "kept": "below zero: rows that stay because the delivery names their users, in dead letters only",
    },
    measures={"newest_change": "max(changed_on)"},
    statistics=("user_id",),
    patterns=("Stateful Merger", "Single Runner", "Audit-Write-Audit-Publish"),
    freshness_hours=24,
    watch=Watch(lag=Lag()),
)

DEVICES = Contract(
    dataset="silver.devices",
    description="Devices with their history, by type and version: what each was called from when to when (SCD2)",
    owner="team:analytics",
    reads=(Read(dataset="bronze.devices", reach=WHOLE),),
    write=Merge(),
    columns=(
        Column(name="device_type", type="STRING", nullable=False, description="Device type"),
        Column(name="device_version", type="STRING", nullable=False, description="Device version"),
        Column(name="full_name", type="STRING", description="Name for people"),
        Column(
            name="occurrences",
            type="BIGINT",
            nullable=False,
            description="Rows of the newest delivery it stands for; 0 of a version that no longer holds",
        ),
        Column(
            name="changed_on",
            type="STRING",
            nullable=False,
            description="Day of the delivery that made the version what it is (UTC)",
        ),
        Column(
            name="valid_from",
            type="TIMESTAMP",
            description="First instant it holds, midnight of that day; null when it always has: of the first delivery",
        ),
        Column(name="valid_to", type="TIMESTAMP", description="First instant it no longer holds; null when open"),
    ),
    key=("device_type", "device_version", "changed_on"),
    rows_in="rows of the newest delivery",
    rules=(
        RowRule(
            name="valid_range",
            expression="valid_from IS NULL OR valid_to IS NULL OR valid_from < valid_to",
            description="A version holds for some time",
        ),
        RowRule(
            name="delivered_while_open",
            expression="(occurrences > 0) = (valid_to IS NULL)",
            description="The newest delivery stands behind the open versions, and behind no other",
        ),
    ),
    audits=(
        Audit(
            name="one_open_version",
            expression="count_if(valid_to is null) = "
            "count(distinct case when valid_to is null then struct(device_type, device_version) end)",
            description="No device has two open versions",
        ),
    ),
    stands_for="sum(occurrences)",
    reasons={"duplicates": "sum(greatest(occurrences - 1, 0))", "earlier_versions": "-count_if(occurrences = 0)"},
    left_out={
        "dead_lettered": "",
        # These rows count as rows out but not as rows in.
        "earlier_versions": "below zero: versions that no longer hold",
    },
    measures={"current": "count_if(valid_to is null)"},
    statistics=("device_type", "device_version"),
    patterns=("Audit-Write-Audit-Publish", "Merger"),
    freshness_hours=24,
    watch=Watch(lag=Lag()),
)
