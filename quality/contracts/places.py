"""The places of addresses, as the country table inside the package `iptocc` tells them."""

from dataclasses import replace

from blogdata.planning.reach import WHOLE
from blogdata.publish.contract import Contract, Read
from blogdata.publish.schema import RowRule
from blogdata.publish.watch import Lag, Watch
from blogdata.publish.writes import Merge
from quality.contracts import columns as c
from quality.contracts.landed import TAKEN_OUT

OUTCOMES = ("found", "unknown", "reserved", "waiting")
WAITING = "waiting"
HERE = "here"
"""Who told a place: this deployment by itself."""
LOOKED_UP = "looked_up"
"""Measure of a table that the package alone has answered; earlier versions asked a service, and have none."""
PLACE = (
    c.quasi(name="country", classification=c.PERSONAL, description="Country code (ISO 3166-1 alpha-2)"),
    c.quasi(
        name="region",
        classification=c.PERSONAL,
        description="Region within the country; null, the table knows countries only",
    ),
    c.quasi(name="city", classification=c.PERSONAL, description="City; null, the table knows countries only"),
)

ANSWER = (
    c.of_visitor(name="ip", nullable=False, description="The address as received"),
    c.time(name="valid_from", description="First instant it holds: 1970, so that it holds for all visits"),
    c.fact(name="valid_until", type="TIMESTAMP", description="First instant it no longer holds: null"),
    c.text(
        name="outcome",
        description="found, unknown or reserved (in no public network); waiting in tables of earlier versions",
    ),
    *PLACE,
    c.fact(
        name="told_by",
        type="STRING",
        description="here; in tables of earlier versions also service, or null while it waited",
    ),
)

PLACES = Contract(
    dataset="silver.places",
    description="Where the addresses of visits are: each looked up once",
    owner="team:analytics",
    reads=(Read(dataset="silver.visits", reach=WHOLE, columns=("event_hour", "ip")),),
    write=Merge(),
    columns=tuple(replace(column, sourceless="looked up outside Spark") for column in ANSWER),
    key=("ip", "valid_from"),
    rows_in="rows of the table before, and addresses of `silver.visits` that it does not have",
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
    measures={LOOKED_UP: "count(1)"},
    statistics=("valid_from",),
    patterns=("Local Sequencer", "Merger", "Audit-Write-Audit-Publish"),
    freshness_hours=24,
    watch=Watch(lag=Lag()),
)
