"""Requests of access logs, all of them: what the filters remove before it is a page view stays visible here."""

from blogdata.contract.contract import Read
from blogdata.contract.schedule import Clock, On, Runs
from blogdata.contract.schema import RowRule
from blogdata.planning.reaches import EventsWithin
from quality.contracts import columns as c
from quality.contracts import page_views

NO_REQUESTS = frozenset({"json", "comment"})
"""Formats, in bronze, of visit events and of what a server writes between its requests; all others are requests."""
OTHER = "other"
"""What stands for a value that clients made up, or that is rare."""
CRAWLER = "crawler:"
"""How the kind of a crawler's request begins; its category follows."""
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND", "CONNECT", "TRACE")
MOST_HOSTS, MOST_PATHS, LONGEST_PATH = 20, 100, 200

REQUESTS_DAILY = page_views.daily(
    dataset="gold.requests_daily",
    description="All requests of access logs on a day by host, kind, status and method, with their bytes; and the "
    "paths most often not found",
    reads=(Read(dataset="bronze.visits", reach=EventsWithin(breakdown="event_hours", but=NO_REQUESTS)),),
    runs=Runs(on=On.ALL_THERE, at=Clock.NIGHTLY),
    columns=(
        c.EVENT_DATE,
        c.text(
            name="host",
            description=f"Virtual host of the log, or unknown; {OTHER}: all but the {MOST_HOSTS} most frequent",
        ),
        c.text(
            name="kind",
            description=f"feed, monitoring, {CRAWLER} and its category, asset, or page: the first that it is",
        ),
        c.text(name="status", description=f"Status of the answer, or {OTHER}"),
        c.text(name="status_class", description=f"Its class, such as 2xx, or {OTHER}"),
        c.text(name="method", description=f"Method of the request, or {OTHER}"),
        c.text(
            name="path",
            description=f"Path without query, up to {LONGEST_PATH} characters, of the {MOST_PATHS} groups of the day "
            "that were most often answered with 404, 410 or 5xx; empty: all other requests",
        ),
        c.text(name="referral_host", description="Host whose link led to the path, or direct; empty where the path is"),
        c.count(name="requests", description="Requests", sourceless="counts rows"),
        c.count(name="bytes", description="Bytes of their answers, as far as logged"),
        page_views.HOURS_PRESENT,
    ),
    key=("event_date", "host", "kind", "status", "method", "path", "referral_host"),
    rules=(
        page_views.HOURS_OF_A_DAY,
        RowRule(
            name="counts_are_counts", expression="requests >= 1 AND bytes >= 0", description="A group has requests"
        ),
        RowRule(
            name="a_path_was_not_found",
            expression="path = '' OR status IN ('404', '410') OR status_class = '5xx'",
            description="Only a path without an answer is named",
        ),
    ),
    rows_in="usable log lines of `bronze.visits` of the hours of the day",
    stands_for="sum(requests)",
    reasons={"aggregated": "sum(requests) - count(1)"},
    left_out={"aggregated": "the sum of `requests` less the number of groups"},
    measures={"bytes": "sum(bytes)", **page_views.PARTS},
    statistics=("kind", "status"),
    patterns=("Aligned Fan-In", "Data Overwrite", "Audit-Write-Audit-Publish"),
)
