"""The visits with what was known of them at the event."""

from blogdata.planning.reach import SAME, AsOf
from blogdata.planning.reaches import Answers
from blogdata.publish.contract import Contract, Read
from blogdata.publish.schema import Reference
from blogdata.publish.watch import Lag, Sla, Watch
from blogdata.publish.writes import Replace, Slices
from quality.contracts import columns as c
from quality.contracts.places import COUNTRY
from quality.contracts.visits import ARRIVED, EVENT, IDENTIFIED, IN_ITS_HOUR

VISITS_ENRICHED = Contract(
    dataset="silver.visits_enriched",
    description="Visit events with the user, the device and the place as of the event",
    owner="team:analytics",
    reads=(
        Read(dataset="silver.visits", reach=SAME),
        Read(dataset="silver.users", reach=AsOf(delivered="bronze.users"), optional=True),
        Read(dataset="silver.devices", reach=AsOf(delivered="bronze.devices", landed="devices"), optional=True),
        Read(dataset="silver.places", reach=Answers(lacking="waiting_places"), optional=True),
    ),
    write=Replace(slices=Slices(of="silver.visits", column="arrival_hour")),
    columns=(
        c.EVENT_HOUR,
        *c.VISIT,
        c.UTM,
        c.text(name="referral_host", description="Host the visitor came from, or direct"),
        *c.CONTEXT,
        c.quasi(name="device_name", description="Name of the device for people, as of the event"),
        c.user_time(name="user_registered", description="When the user registered"),
        c.user_time(name="user_version_from", description="Start of the user's version that was joined"),
        c.flag(
            name="user_known",
            description="A version of the user held at the event",
            generated="user_version_from IS NOT NULL",
            sourceless="whether the join has found a version",
        ),
        c.flag(
            name="device_known",
            description="A version of the device held at the event",
            sourceless="whether the join has found a version",
        ),
        COUNTRY,
        c.optional(ARRIVED),
        c.fact(
            name="place_outcome",
            type="STRING",
            description="found, unknown, reserved or waiting (not yet looked up); null if the event has no address",
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
    references=(Reference(dataset="silver.users", columns={"user_id": "user_id", "user_version_from": "valid_from"}),),
    profiled=("page", "referral_host", "browser", "device_type", "network_type", "user_known"),
    statistics=("event_time", "page"),
    patterns=("Static Joiner", "Data Overwrite", "Audit-Write-Audit-Publish"),
    freshness_hours=2,
    watch=Watch(lag=Lag(), sla=Sla()),
)
