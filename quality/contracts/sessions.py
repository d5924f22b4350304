"""Sessions: the page views of a visitor without a silence of more than half an hour; by hour, and by day.

A session is of a *visitor* (`user_id`), whatever the browsers and the visits (`visit_id`) of its page views; the
page views of who asked not to be shared belong to sessions like any others, and mark them. Crawlers are no visitors.
"""

from dataclasses import replace
from datetime import timedelta

from blogdata.contract.contract import Contract, Read
from blogdata.contract.schedule import Clock, On, Runs
from blogdata.contract.schema import RowRule
from blogdata.contract.watch import Lag, Sla, Watch
from blogdata.contract.writes import AppearsWith
from blogdata.planning.reach import SAME, WITHIN, Same
from blogdata.planning.reaches import Carried
from quality.contracts import columns as c
from quality.contracts import page_views
from quality.contracts.visits import EVENT
from quality.session_timeout import INACTIVITY

PAUSE = f"{INACTIVITY // timedelta(minutes=1)} minutes"
_SECONDS = int(INACTIVITY.total_seconds())
_HOUR = "\"yyyy-MM-dd'T'HH\""
OVER = f"date_format(timestampadd(SECOND, {_SECONDS}, ended_at), {_HOUR})"
"""SQL expression of the hour in which a session is over: that of its last page view plus the inactivity."""

SESSION_ID = c.pseudonym("session_id", "Hash of the place of the page view of the session that arrived first")
STATE = (
    c.of_user("user_id", "The visitor; joins silver.users", nullable=False),
    c.time("started_at", "Time of the first page view"),
    c.time("ended_at", "Time of the last page view"),
    c.count("pages", "Page views since the start"),
    c.text("entry_page", "The first page"),
    c.of_visitor("referral", "Where the visitor came from to the first page"),
    c.text("exit_page", "The last page"),
    c.flag("keep_private", "The visitor asked not to be shared, with any of the page views"),
    c.fact("first_pages", "The first five pages, in order", type="ARRAY<STRING>", nullable=False),
)
PATHS = ("entry_page", "exit_page", "first_pages")
FLAG = c.flag(
    "is_completed",
    "The session is over; if not, it was open at the end of the hour, and a later hour has its next state",
)
HOUR = replace(c.EVENT_HOUR, description="Hour in which the session is over, or at whose end it was open (UTC)")
PENDING = "pending"
"""Measure: digest of the pending sessions of an hour, from which the next hour continues."""
CARRIED = Carried(measure=PENDING)
_RULES = (
    RowRule(
        "in_order",
        "started_at <= ended_at AND pages >= 1 AND (pages > 1 OR started_at = ended_at)",
        "A session has page views, and does not end before it starts",
    ),
    RowRule(
        "path_begins_at_entry",
        "element_at(first_pages, 1) = entry_page AND size(first_pages) = least(pages, 5)",
        "The path has the first pages",
    ),
)

SESSIONS = Contract(
    dataset="silver.sessions",
    description="Sessions of visitors, in the hour in which they are over; and, flagged, those open at its end",
    owner="team:analytics",
    reads=(Read("silver.visits", Same(delivered=page_views.DELIVERED)), Read("silver.sessions", CARRIED)),
    columns=(HOUR, SESSION_ID, *STATE, FLAG, c.count("new_pages", "Page views in this very hour")),
    key=("session_id",),
    partitioning=EVENT,
    rules=(
        *_RULES,
        RowRule(
            "completed_when_over",
            f"is_completed = (event_hour = {OVER}) AND event_hour <= {OVER}",
            "A session is completed in the hour that contains its last page view plus the inactivity",
        ),
        RowRule(
            "new_pages_are_pages",
            "new_pages BETWEEN 0 AND pages",
            "The page views of the hour are some of the session's",
        ),
    ),
    rows_in="rows of `silver.visits` of the hour",
    stands_for="sum(new_pages)",
    reasons={"aggregated": "sum(new_pages) - count(1)"},
    left_out={"aggregated": "the sum of `new_pages` less the number of sessions; below zero when more are only open"},
    measures={
        "completed": "count_if(is_completed)",
        "open": "count_if(NOT is_completed)",
        "carried": "count_if(new_pages < pages)",
        "private": "count_if(keep_private)",
        PENDING: "bit_xor(if(is_completed, 0L, xxhash64(session_id, {})))".format(
            ", ".join(column.name for column in STATE)
        ),
    },
    statistics=("ended_at",),
    paths=PATHS,
    patterns=(
        "Incremental Sessionizer",
        "Keyed Idempotency",
        "Transactional Writer",
        "Data Overwrite",
        "Audit-Write-Audit-Publish",
    ),
    freshness_hours=2,
    watch=Watch(lag=Lag(), sla=Sla()),
)

SESSIONS_PENDING = Contract(
    dataset="silver.sessions_pending",
    description="Sessions open at the end of an hour, as the next hour continues them; internal to silver.sessions",
    owner="team:analytics",
    reads=(Read("silver.sessions", SAME),),
    write=AppearsWith(main="silver.sessions"),
    columns=(
        HOUR,
        SESSION_ID,
        *STATE,
        c.fact(
            "appended",
            "Position of the page view that arrived first",
            type="STRUCT<arrival_hour: STRING, replayed: BOOLEAN, source_file: STRING, source_offset: BIGINT>",
            nullable=False,
        ),
    ),
    key=("session_id",),
    partitioning=EVENT,
    rules=(*_RULES, RowRule("still_open", f"event_hour < {OVER}", "The next page view may belong to it")),
    rows_in="sessions of `silver.sessions`, by the commit that publishes both",
    left_out={"completed": ""},
    statistics=("ended_at",),
    patterns=("Incremental Sessionizer", "Transactional Writer"),
    shared=False,
)

SESSIONS_DAILY = page_views.daily(
    dataset="gold.sessions_daily",
    description="The completed sessions of a day, that in which they were over; nobody is named",
    reads=(Read("silver.sessions", WITHIN),),
    runs=Runs(on=On.ALL_THERE, at=Clock.NIGHTLY),
    columns=(
        c.EVENT_DATE,
        SESSION_ID,
        *[column for column in STATE if column.name in ("started_at", "ended_at")],
        c.measure("seconds", "Time from the first page view to the last"),
        *[column for column in STATE if column.name in ("pages", "entry_page", "exit_page")],
        c.quasi("referral", "Where the visitor came from to the first page, without query, fragment or user"),
        c.flag("bounced", "The visitor saw one page and left", generated="pages = 1"),
        c.text("path", "The first five pages, with > between them"),
        *[column for column in STATE if column.name == "keep_private"],
        page_views.HOURS_PRESENT,
    ),
    key=("session_id",),
    rules=(
        page_views.HOURS_OF_A_DAY,
        RowRule(
            "length_is_length", "seconds >= 0 AND pages >= 1", "A session has pages, and does not end before it starts"
        ),
    ),
    rows_in="completed sessions of `silver.sessions` of the hours of the day",
    measures={"bounces": "count_if(bounced)", **page_views.PARTS},
    profiled=("entry_page", "exit_page", "pages"),
    statistics=("entry_page", "exit_page"),
    paths=("entry_page", "exit_page", "path"),
    patterns=("Aligned Fan-In", "Data Overwrite", "Audit-Write-Audit-Publish"),
)
