"""The places of addresses, as a geolocation service or the embedded table told them."""

from dataclasses import replace

from blogdata.planning.answers import Unanswered
from blogdata.planning.reach import WHOLE
from blogdata.publish.contract import Contract, Read
from blogdata.publish.schema import Column, RowRule
from blogdata.publish.watch import Lag, Watch
from blogdata.publish.writes import Merge
from quality.contracts import columns as c
from quality.contracts.landed import TAKEN_OUT

OUTCOMES = ("found", "unknown", "reserved", "waiting")
WAITING = "waiting"
PLACE = (
    Column(
        name="country",
        type="STRING",
        subject=c.VISITOR_QUASI,
        classification=c.PERSONAL,
        description="Country code (ISO 3166-1 alpha-2)",
    ),
    Column(
        name="region",
        type="STRING",
        subject=c.VISITOR_QUASI,
        classification=c.PERSONAL,
        description="Region within the country, if told",
    ),
    Column(name="city", type="STRING", subject=c.VISITOR_QUASI, classification=c.PERSONAL, description="City, if told"),
)

ANSWER = (
    Column(name="ip", type="STRING", subject=c.VISITOR_DIRECT, nullable=False, description="The address as received"),
    c.fact(
        name="valid_from",
        type="TIMESTAMP",
        nullable=False,
        description="First instant it holds; 1970 for the first answer, so that it holds for all earlier visits",
    ),
    c.fact(name="valid_until", type="TIMESTAMP", description="First instant it no longer holds; null when open"),
    c.fact(
        name="outcome",
        type="STRING",
        nullable=False,
        description="found, unknown, reserved (in no public network, not asked for) or waiting (not yet answered)",
    ),
    *PLACE,
    c.fact(
        name="told_by",
        type="STRING",
        description="here (the embedded table, or the address itself) or service; null while it waits",
    ),
)

PLACES = Contract(
    dataset="silver.places",
    description="Where the addresses of visits are: an answer and when it is valid, or none yet",
    owner="team:analytics",
    reads=(
        Read(dataset="silver.visits", reach=WHOLE, columns=("event_hour", "event_time", "ip", "keep_private")),
        Read(dataset="silver.places", reach=Unanswered(waiting=WAITING)),
    ),
    write=Merge(),
    columns=tuple(replace(column, sourceless="answered outside Spark") for column in ANSWER),
    key=("ip", "valid_from"),
    rows_in="rows of the table before, and addresses of `silver.visits` that may be asked for and have no valid answer",
    left_out=TAKEN_OUT,
    rules=(
        RowRule(
            name="valid_range",
            expression="valid_until IS NULL OR valid_from < valid_until",
            description="An answer holds for some time",
        ),
        RowRule(
            name="known_outcome",
            expression="outcome IN ({})".format(", ".join(f"'{outcome}'" for outcome in OUTCOMES)),
            description="It is said what came of the question",
        ),
        RowRule(
            name="answer_has_source",
            expression=f"(outcome = '{WAITING}') = (told_by IS NULL)",
            description="It is known who answered",
        ),
        RowRule(
            name="found_has_country",
            expression="(outcome = 'found') = (country IS NOT NULL)",
            description="A place that was found has a country, and no other has",
        ),
    ),
    measures={WAITING: f"count_if(outcome = '{WAITING}')", "answered": f"count_if(outcome <> '{WAITING}')"},
    statistics=("valid_from",),
    patterns=("Local Sequencer", "Merger", "Secrets Pointer", "Audit-Write-Audit-Publish"),
    freshness_hours=24,
    watch=Watch(lag=Lag()),
)
