"""The visits with what was known of them at the event, and the places of their addresses, by the package `iptocc`."""

from dataclasses import replace

from blogdata.contract.contract import Contract, Read
from blogdata.contract.schema import Reference, RowRule
from blogdata.contract.watch import Lag, Sla, Watch
from blogdata.contract.writes import Merge, Replace, Slices
from blogdata.planning.reach import SAME, WHOLE, AsOf
from blogdata.planning.reaches import Answers
from quality.contracts import columns as c
from quality.contracts.landed import TAKEN_OUT
from quality.contracts.visits import ARRIVED, EVENT, IDENTIFIED, IN_ITS_HOUR

WAITING = "waiting"
"""Outcome of a visit whose address is not looked up yet."""
COUNTRY = c.quasi("country", "Country code (ISO 3166-1 alpha-2)", classification=c.PERSONAL)

PLACES = Contract(
    dataset="silver.places",
    description="Where the addresses of visits are: each looked up once",
    owner="team:analytics",
    reads=(Read("silver.visits", WHOLE, columns=("event_hour", "ip")),),
    write=Merge(),
    columns=tuple(
        replace(column, sourceless="looked up outside Spark")
        for column in (
            c.of_visitor("ip", "The address as received", nullable=False),
            c.text("outcome", "found, unknown or reserved (in no public network)"),
            COUNTRY,
        )
    ),
    key=("ip",),
    rows_in="rows of the table before, and addresses of `silver.visits` that it does not have",
    left_out=TAKEN_OUT,
    rules=(
        RowRule("known_outcome", "outcome IN ('found', 'unknown', 'reserved')", "It is said what came of the question"),
        RowRule(
            "found_has_country",
            "(outcome = 'found') = (country IS NOT NULL)",
            "A place that was found has a country, and no other has",
        ),
    ),
    statistics=("outcome",),
    patterns=("Local Sequencer", "Merger", "Audit-Write-Audit-Publish"),
    freshness_hours=24,
    watch=Watch(lag=Lag()),
)

VISITS_ENRICHED = Contract(
    dataset="silver.visits_enriched",
    description="Visit events with the user, the device and the place as of the event",
    owner="team:analytics",
    reads=(
        Read("silver.visits", SAME),
        Read("silver.users", AsOf(delivered="bronze.users"), optional=True),
        Read("silver.devices", AsOf(delivered="bronze.devices", landed="devices"), optional=True),
        Read("silver.places", Answers(lacking="waiting_places"), optional=True),
    ),
    write=Replace(slices=Slices(of="silver.visits", column="arrival_hour")),
    columns=(
        c.EVENT_HOUR,
        *c.VISIT,
        c.UTM,
        c.text("referral_host", "Host the visitor came from, or direct"),
        *c.CONTEXT,
        c.quasi("device_name", "Name of the device for people, as of the event"),
        c.user_time("user_registered", "When the user registered"),
        c.user_time("user_version_from", "Start of the user's version that was joined"),
        c.flag(
            "user_known",
            "A version of the user held at the event",
            generated="user_version_from IS NOT NULL",
            sourceless="whether the join has found a version",
        ),
        c.flag(
            "device_known",
            "A version of the device held at the event",
            sourceless="whether the join has found a version",
        ),
        COUNTRY,
        c.optional(ARRIVED),
        c.optional_text(
            "place_outcome", "found, unknown, reserved or waiting (not yet looked up); null if the event has no address"
        ),
    ),
    key=("visit_id", "event_time", "page"),
    partitioning=EVENT,
    rules=(IN_ITS_HOUR, IDENTIFIED),
    measures={
        "unknown_users": "count_if(not user_known)",
        "unknown_devices": "count_if(not device_known)",
        "waiting_places": "count_if(place_outcome = 'waiting')",
    },
    references=(Reference("silver.users", {"user_id": "user_id", "user_version_from": "valid_from"}),),
    profiled=("page", "referral_host", "browser", "device_type", "network_type", "user_known"),
    statistics=("event_time", "page"),
    patterns=("Static Joiner", "Data Overwrite", "Audit-Write-Audit-Publish"),
    freshness_hours=2,
    watch=Watch(lag=Lag(), sla=Sla()),
)
