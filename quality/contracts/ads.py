"""The ads that visitors were shown: as they arrived, those that are unusable, each once, and joined with visits."""

from dataclasses import replace
from datetime import timedelta

from blogdata.contract.contract import Contract, Read
from blogdata.contract.partitions import Grain
from blogdata.contract.schedule import Runs
from blogdata.contract.schema import Column, Partitioning, Reference, RowRule
from blogdata.contract.watch import Flow, Lag, Layer, Skew, Sla, Watch
from blogdata.contract.writes import AppearsWith
from blogdata.planning.reach import SAME, EventsOf, Landed
from blogdata.planning.reaches import Around
from quality.contracts import columns as c
from quality.contracts import landed
from quality.contracts.landed import ARRIVAL, BYTES, ERASED, LANDED_LINES, POSITION, POSITION_IS_REAL
from quality.contracts.visits import ARRIVED, BOUNDED_DUPLICATES, EVENT, FEW_CONFLICTS, STANDS_FOR, STANDS_FOR_ITSELF

DISPLAY = Partitioning(column="display_hour", grain=Grain.HOUR)
IN_BRONZE = Reference("bronze.ads", {name: name for name in POSITION})

IN_ITS_HOUR = RowRule(
    "in_its_hour",
    "display_hour = date_format(display_time, \"yyyy-MM-dd'T'HH\")",
    "A row lies in the partition of its display time",
)

FOUND = tuple(c.optional(column) for column in c.AD if column.name != "display_time")
"""What is found in a usable line."""

RECEIVED = Contract(
    dataset="bronze.ads",
    description="Every line that was landed as a displayed ad, as received",
    owner="team:platform",
    reads=(Read("landing.ads", Landed(table="ads", grain=Grain.HOUR), fields=landed.AD),),
    columns=(
        c.RAW,
        *c.SOURCE,
        c.ARRIVAL_HOUR,
        c.fact("display_time", "When the ad was shown; null when rejected", type="TIMESTAMP"),
        c.optional(c.DISPLAY_HOUR),
        c.REASONS,
        *FOUND,
    ),
    key=POSITION,
    partitioning=ARRIVAL,
    rows_in=LANDED_LINES,
    left_out=ERASED,
    rules=(
        RowRule(
            "judged",
            "(size(reasons) = 0) = (display_hour IS NOT NULL)",
            "A row is either rejected with a reason or belongs to an hour of display",
        ),
        POSITION_IS_REAL,
    ),
    measures={
        "bytes": BYTES,
        "dead": "count_if(size(reasons) > 0)",
        "displays": "count_if(size(reasons) = 0)",
        "max_event_time": "max(display_time)",
    },
    breakdowns={"display_hours": ("display_hour",), "reasons": ("explode(reasons)",)},
    statistics=("source_offset", "display_hour"),
    patterns=(
        *("Readiness Marker", "Dead-Letter", "Horizontal Partitioner", "Wrapper"),
        *("Metadata Enhancer", "Schema Compatibility Enforcer", "In-Place Overwriter"),
    ),
    freshness_hours=1,
    watch=Watch(flow=Flow(layer=Layer.STORAGE), skew=Skew(), lag=Lag(), sla=Sla()),
)

DEAD_LETTERS = landed.dead_letters(
    dataset="bronze.ad_dead_letters",
    description="Landed lines that are no usable displays of an ad, each with all its reasons and its place",
    reads=(Read("bronze.ads", SAME),),
    columns=(c.RAW, *c.SOURCE, c.ARRIVAL_HOUR, c.REASONS),
    references=(IN_BRONZE,),
    rows_in="rows of `bronze.ads` of the hour of arrival",
)

DISPLAYED = Contract(
    dataset="silver.ads",
    description="Displays of ads: parsed, each once, beside the untouched line they came from",
    owner="team:analytics",
    reads=(Read("bronze.ads", EventsOf(breakdown="display_hours")),),
    runs=Runs(judged_by="bronze.ad_dead_letters"),
    columns=(c.DISPLAY_HOUR, *c.AD, *STANDS_FOR, c.RAW, ARRIVED, *c.SOURCE),
    key=("visit_id", "ad_id", "display_time"),
    partitioning=DISPLAY,
    references=(IN_BRONZE,),
    rules=(
        IN_ITS_HOUR,
        RowRule(
            "identified",
            " AND ".join(c.filled(name) for name in c.AD_IDENTIFIERS),
            "Identifiers are not blank; bronze rejects those that are",
        ),
        STANDS_FOR_ITSELF,
    ),
    audits=(
        BOUNDED_DUPLICATES,
        replace(FEW_CONFLICTS, description=FEW_CONFLICTS.description.replace("event", "display")),
    ),
    rows_in="valid rows of all of `bronze.ads` whose display lies in the hour",
    stands_for="sum(occurrences)",
    reasons={"duplicates": "sum(occurrences - 1)"},
    measures={"conflicts": "sum(conflicts)"},
    statistics=("display_time", "ad_id"),
    patterns=(
        *("Windowed Deduplicator", "Wrapper", "Data Overwrite"),
        *("Transactional Writer", "Dynamic Late Data Integrator", "Audit-Write-Audit-Publish"),
        *("Constraints Enforcer", "Schema Compatibility Enforcer", "Horizontal Partitioner"),
        "Metadata Enhancer",
    ),
    freshness_hours=2,
    # An hour that has late rows of a neighbour only is no small hour: the volume is watched in bronze.
    watch=Watch(flow=Flow(layer=Layer.DATA, event_time="display_time"), lag=Lag(), sla=Sla()),
)

AD_CONFLICTS = landed.conflicts(
    dataset="silver.ad_conflicts",
    description="Displays that lost to an earlier one with the same identity and another payload",
    reads=(Read("silver.ads", SAME),),
    write=AppearsWith(main="silver.ads"),
    columns=(c.DISPLAY_HOUR, c.AD[2], c.AD[0], c.AD[3], c.RAW, ARRIVED, *c.SOURCE),
    partitioning=DISPLAY,
    references=(Reference("silver.ads", {name: name for name in DISPLAYED.key}),),
    rows_in="duplicates of `silver.ads`, by the commit that publishes both",
    rules=(IN_ITS_HOUR,),
    statistics=("display_time",),
)

BELONGS = timedelta(minutes=30)
"""How long before a visit's event the display was at most to which it belongs."""
BOTH, EVENT_SIDE, DISPLAY_SIDE = "both", "event", "display"
_EVENT = "struct(visit_id, event_time, page)"

WITH_ADS = Contract(
    dataset="silver.visits_with_ads",
    description="Visit events that name an ad, joined with its displays in the half hour before: a row for each pair, "
    "for each event without a display, and for each display without an event",
    owner="team:analytics",
    reads=(
        Read("silver.ads", Around(grain=Grain.HOUR, before=BELONGS)),
        # A blog that displays no ads has no such hours.
        Read(
            "silver.visits",
            Around(grain=Grain.HOUR, after=BELONGS, since="silver.ads", delivered="bronze.visits"),
            optional=True,
        ),
    ),
    columns=(
        replace(
            c.EVENT_HOUR, description="Hour of the event; of a display without an event, that of the display (UTC)"
        ),
        c.text(
            "side", "both (an event and a display it belongs to), event (without a display), display (without an event)"
        ),
        *(c.VISIT[0], c.AD[0]),
        *(c.optional(column) for column in (*c.VISIT[1:5], *c.AD[3:])),
        c.optional_text("display_page", "Path of the page that showed the ad"),
        Column("seconds_between", "Seconds from the display to the event", type="DOUBLE"),
    ),
    key=("visit_id", "ad_id", "event_time", "page", "display_time"),
    partitioning=EVENT,
    references=(
        Reference("silver.visits", {name: name for name in ("visit_id", "event_time", "page")}),
        Reference("silver.ads", {name: name for name in DISPLAYED.key}),
    ),
    rules=(
        RowRule(
            "in_its_hour",
            "event_hour = date_format(coalesce(event_time, display_time), \"yyyy-MM-dd'T'HH\")",
            "A row lies in the partition of its event, or of its display if it has no event",
        ),
        RowRule(
            "side_is_there",
            f"(side = '{DISPLAY_SIDE}') = (event_time IS NULL)"
            f" AND (side = '{EVENT_SIDE}') = (display_time IS NULL)"
            f" AND side IN ('{BOTH}', '{EVENT_SIDE}', '{DISPLAY_SIDE}')",
            "A row has the columns of the side or sides that it names",
        ),
        RowRule(
            "belong_together",
            f"(side = '{BOTH}') = (seconds_between IS NOT NULL)"
            f" AND (seconds_between IS NULL OR seconds_between BETWEEN 0 AND {BELONGS.total_seconds():g})",
            "An event belongs to a display of at most half an hour before",
        ),
    ),
    rows_in="rows of `silver.visits` and of `silver.ads` of the hour",
    stands_for=f"count(distinct case when event_time is not null then {_EVENT} end) + count_if(event_time is null)",
    reasons={
        "further_displays": f"count(distinct case when event_time is not null then {_EVENT} end)"
        " - count_if(event_time is not null)"
    },
    left_out={
        "without_ad": "events that name no ad",
        "with_event": "displays to which an event belongs: they are in the rows of their events",
        # These rows count as rows out but not as rows in.
        "further_displays": "below zero: rows of an event that belongs to more than one display, but for one",
    },
    measures={
        "pairs": f"count_if(side = '{BOTH}')",
        "events_alone": f"count_if(side = '{EVENT_SIDE}')",
        "displays_alone": f"count_if(side = '{DISPLAY_SIDE}')",
    },
    profiled=("seconds_between",),
    statistics=("ad_id", "display_time"),
    patterns=("Dynamic Joiner", "Data Overwrite", "Audit-Write-Audit-Publish"),
    freshness_hours=3,
    watch=Watch(lag=Lag(), sla=Sla()),
)
