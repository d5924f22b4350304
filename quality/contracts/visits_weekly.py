"""The page views of a week, one a row."""

from dataclasses import replace
from datetime import timedelta

from blogdata.contract.contract import Contract, Read
from blogdata.contract.schedule import Clock, On, Runs
from blogdata.contract.schema import Buckets, Column, RowRule
from blogdata.contract.writes import ByPeriod, Slices, Sorted
from blogdata.planning.reach import WITHIN
from quality.contracts import columns as c
from quality.contracts.page_views import CUBE_DIMENSIONS, HOURS_OF_A_WEEK, HOURS_PRESENT, PARTS, ROWS_IN, WATCHED, WEEK

USER_BUCKETS = Buckets(column="user_bucket", of="user_id", number=64)

VISITS_WEEKLY = Contract(
    dataset="gold.visits_weekly",
    description="The page views of a week, one a row, to be queried by people; without who asked not to be shared",
    owner="team:analytics",
    reads=(Read("silver.visits_enriched", WITHIN),),
    runs=Runs(on=On.FIRST_ALL_THERE, at=Clock.WEEKLY, lookback=13),
    write=ByPeriod(
        kept=timedelta(days=7),
        frozen=Sorted(by=("user_bucket", "page")),
        slices=Slices(of="silver.visits_enriched", column="arrival_hour", most=24),
    ),
    columns=(
        c.EVENT_WEEK,
        replace(
            c.VISIT[0],
            description="Token of the visit, in no other dataset; page views of a visit that must not be shared have "
            "one of their own",
        ),
        *[column for column in c.VISIT if column.name in ("event_time", "keep_private", "page", "ad_id")],
        c.of_user("user_id", "The visitor; null for who asked not to be shared"),
        CUBE_DIMENSIONS[2],
        *[column for column in c.CONTEXT if column.name in ("browser", "network_type", "device_type")],
        c.quasi("device_name", "Name of the device for people"),
        c.flag("user_known", "A version of the user held at the event"),
        replace(HOURS_PRESENT, description="Hours of the week that were delivered when the row was written"),
        Column(
            name=USER_BUCKETS.column,
            type="INT",
            # Of few visitors each has a bucket alone, and it is the same at every visit.
            classification=c.PERSONAL,
            description=f"One of {USER_BUCKETS.number} buckets of visitors, 0 or more, by a keyed hash of `user_id`: a "
            "filter by it skips files; null without a visitor",
        ),
    ),
    key=("visit_id", "event_time", "page"),
    partitioning=WEEK,
    rules=(
        RowRule(
            "in_its_week",
            "event_week = cast(cast(date_trunc('week', event_time) AS DATE) AS STRING)",
            "A page view lies in its week",
        ),
        RowRule(
            "private_is_private", "NOT keep_private OR user_id IS NULL", "Nobody is named who asked not to be shared"
        ),
        RowRule(
            "bucket_of_a_visitor",
            f"{USER_BUCKETS.of} IS NOT NULL OR {USER_BUCKETS.column} IS NULL",
            "Only a visitor has a bucket",
        ),
        HOURS_OF_A_WEEK,
    ),
    rows_in=ROWS_IN,
    measures={"private": "count_if(keep_private)", **PARTS},
    parts=168,
    statistics=("event_time", "page", "user_bucket"),
    buckets=USER_BUCKETS,
    patterns=(
        *("Fast Metadata Cleaner", "Bucket", "Pseudo-Anonymizer", "Metadata Enhancer"),
        *("Aligned Fan-In", "Static Late Data Integrator", "Audit-Write-Audit-Publish"),
    ),
    freshness_hours=12,
    watch=WATCHED,
)
