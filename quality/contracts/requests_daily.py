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
    reads=(Read("bronze.visits", EventsWithin(breakdown="event_hours", but=NO_REQUESTS)),),
    runs=Runs(on=On.ALL_THERE, at=Clock.NIGHTLY),
    columns=(
        c.EVENT_DATE,
        c.text("host", f"Virtual host of the log, or unknown; {OTHER}: all but the {MOST_HOSTS} most frequent"),
        c.text("kind", f"feed, monitoring, {CRAWLER} and its category, asset, or page: the first that it is"),
        c.text("status", f"Status of the answer, or {OTHER}"),
        c.text("status_class", f"Its class, such as 2xx, or {OTHER}"),
        c.text("method", f"Method of the request, or {OTHER}"),
        c.text(
            "path",
            f"Path without query, up to {LONGEST_PATH} characters, of the {MOST_PATHS} groups of the day "
            "that were most often answered with 404, 410 or 5xx; empty: all other requests",
        ),
        c.text("referral_host", "Host whose link led to the path, or direct; empty where the path is"),
        c.count("requests", "Requests", sourceless="counts rows"),
        c.count("bytes", "Bytes of their answers, as far as logged"),
        page_views.HOURS_PRESENT,
    ),
    key=("event_date", "host", "kind", "status", "method", "path", "referral_host"),
    rules=(
        page_views.HOURS_OF_A_DAY,
        RowRule("counts_are_counts", "requests >= 1 AND bytes >= 0", "A group has requests"),
        RowRule(
            "a_path_was_not_found",
            "path = '' OR status IN ('404', '410') OR status_class = '5xx'",
            "Only a path without an answer is named",
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
