"""The places of addresses, as the country table inside the package `iptocc` tells them."""

from dataclasses import replace

from blogdata.planning.reach import WHOLE
from blogdata.publish.contract import Contract, Read
from blogdata.publish.schema import RowRule
from blogdata.publish.watch import Lag, Watch
from blogdata.publish.writes import Merge
from quality.contracts import columns as c
from quality.contracts.landed import TAKEN_OUT

WAITING = "waiting"
"""Outcome of a visit whose address is not looked up yet."""
COUNTRY = c.quasi(name="country", classification=c.PERSONAL, description="Country code (ISO 3166-1 alpha-2)")

PLACES = Contract(
    dataset="silver.places",
    description="Where the addresses of visits are: each looked up once",
    owner="team:analytics",
    reads=(Read(dataset="silver.visits", reach=WHOLE, columns=("event_hour", "ip")),),
    write=Merge(),
    columns=tuple(
        replace(column, sourceless="looked up outside Spark")
        for column in (
            c.of_visitor(name="ip", nullable=False, description="The address as received"),
            c.text(name="outcome", description="found, unknown or reserved (in no public network)"),
            COUNTRY,
        )
    ),
    key=("ip",),
    rows_in="rows of the table before, and addresses of `silver.visits` that it does not have",
    left_out=TAKEN_OUT,
    rules=(
        RowRule(
            name="known_outcome",
            expression="outcome IN ('found', 'unknown', 'reserved')",
            description="It is said what came of the question",
        ),
        RowRule(
            name="found_has_country",
            expression="(outcome = 'found') = (country IS NOT NULL)",
            description="A place that was found has a country, and no other has",
        ),
    ),
    statistics=("outcome",),
    patterns=("Local Sequencer", "Merger", "Audit-Write-Audit-Publish"),
    freshness_hours=24,
    watch=Watch(lag=Lag()),
)
