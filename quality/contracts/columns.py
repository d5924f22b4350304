"""Columns that mean the same in every dataset that has them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from blogdata.contract.schema import NOBODY, Classification, Column, How, Subject, Whose

PERSONAL = Classification.PERSONAL
UNKNOWN = "unknown"
"""Value of a dimension that is null or empty, where page views are counted by it."""
DIRECT = "direct"
"""The host that a visitor came from, when there is none."""

USER_DIRECT = Subject(whose=Whose.USER, how=How.DIRECT)
USER_QUASI = Subject(whose=Whose.USER, how=How.QUASI_IDENTIFIER)
USER_PSEUDONYM = Subject(whose=Whose.USER, how=How.PSEUDONYM)
VISITOR_DIRECT = Subject(whose=Whose.VISITOR, how=How.DIRECT)
VISITOR_PSEUDONYM = Subject(whose=Whose.VISITOR, how=How.PSEUDONYM)
VISITOR_QUASI = Subject(whose=Whose.VISITOR, how=How.QUASI_IDENTIFIER)
fact = partial(Column, subject=NOBODY)
"""A column that says what happened, where a line lies or how it was judged, and does not lead to a person."""
time = partial(fact, type="TIMESTAMP", nullable=False)
text = partial(fact, type="STRING", nullable=False)
optional_text = partial(fact, type="STRING")
count = partial(Column, type="BIGINT", nullable=False)
measure = partial(Column, type="DOUBLE", nullable=False)
flag = partial(Column, type="BOOLEAN", nullable=False)
of_user = partial(Column, type="STRING", subject=USER_DIRECT)
user_time = partial(Column, type="TIMESTAMP", subject=USER_QUASI)
of_visitor = partial(Column, type="STRING", subject=VISITOR_DIRECT)
pseudonym = partial(Column, type="STRING", subject=VISITOR_PSEUDONYM, nullable=False)
quasi = partial(Column, type="STRING", subject=VISITOR_QUASI)
"""A text that may lead to a visitor together with others; null if it is not known."""

ARRIVAL_HOUR = text("arrival_hour", "Hour of arrival, 2026-01-31T05 (UTC)")
EVENT_HOUR = text("event_hour", "Hour of the event, 2026-01-31T05 (UTC)")
DISPLAY_HOUR = text("display_hour", "Hour of the display, 2026-01-31T05 (UTC)")
EVENT_DATE = text("event_date", "Day of the events, 2026-01-31 (UTC)")
EVENT_WEEK = text("event_week", "Monday of the week of the events (UTC)")
LOAD_DATE = text("load_date", "Day whose delivery the row came with (UTC)")
RAW = Column(
    "raw",
    "The line as received, byte for byte, without its line feed",
    type="BINARY",
    subject=VISITOR_DIRECT,
    nullable=False,
)
SOURCE = (
    text("source_file", "File in the landing zone, relative to it"),
    count("source_offset", "Byte at which the line begins in the decompressed file"),
)
FORMAT = text(
    "format", "json (visit event), or the format of an access log line: combined, main, ...; log if it fits none"
)
REASONS = fact(
    "reasons", "Why the row is rejected: all reasons; empty if it is not", type="ARRAY<STRING>", nullable=False
)
VISIT = (
    pseudonym("visit_id", "One browsing session of one browser"),
    time("event_time", "When the page was opened in the browser"),
    of_user("user_id", "The visitor; joins silver.users", nullable=False),
    flag("keep_private", "The visitor asked not to be shared; true when the event does not say"),
    text("page", "Path of the page, without its query"),
    of_visitor("referral", "URL the visitor came from, with its query"),
    optional_text("ad_id", "The ad that was clicked"),
)
UTM = optional_text(
    "utm", "Campaign of the followed link: utm source / medium / campaign, - for a missing one; null without any"
)
REQUEST = (
    of_visitor("client", "Address, or host name, that a request of an access log came from"),
    of_visitor("agent", "Agent of a request, as sent: any text"),
    optional_text("host", "Host that was asked; null if it is no name of a host"),
    optional_text("method", "Method of the request; null if it is none of HTTP"),
    optional_text("status", "Status of the answer; null if it is none of HTTP"),
    Column("bytes", "Bytes of the answer", type="BIGINT"),
    Column("is_asset", "The request is for a file that belongs to pages", type="BOOLEAN"),
    Column("is_feed", "The request is for a feed", type="BOOLEAN"),
)
"""Columns of lines of access logs; null for visit events."""
IDENTIFIERS = ("visit_id", "user_id")
"""Columns of a visit that must not be blank: a blank value identifies nobody."""
AD = (
    text("ad_id", "The ad; joins the ad of a visit's events"),
    text("page", "Path of the page that showed it"),
    pseudonym("visit_id", "The browsing session that saw it"),
    time("display_time", "When it was shown in the browser"),
    text("campaign", "The campaign it belongs to"),
)
AD_IDENTIFIERS = ("ad_id", "visit_id")
"""Columns of a displayed ad that must not be blank."""
CONTEXT = (
    quasi("browser", "Browser family"),
    quasi("browser_version", "Browser version as sent"),
    quasi("network_type", "Network of the device"),
    quasi("device_type", "Device type; joins silver.devices"),
    quasi("device_version", "Device version; joins silver.devices"),
)
IDENTITY = (
    of_visitor("ip", "Address of the visitor"),
    of_user("login", "Login, when connected"),
    user_time("connected_since", "Since when the visitor is connected; null when not"),
)
CALLED = (of_user("login", "Login of the user"), of_user("email", "Address of the user"))
"""What a user is called by; from silver on, silver.identities has it."""
IDENTITY_TOKEN = Column(
    "identity",
    "Keyed hash of the user, the login and the e-mail, which silver.identities has by it",
    type="STRING",
    subject=USER_PSEUDONYM,
)
USER = (
    *CALLED,
    user_time("registered_datetime", "When the user registered"),
    user_time("first_connection_datetime", "First connection, if any"),
    user_time("last_connection_datetime", "Last connection, if any"),
)


def filled(text: str) -> str:
    """Build the SQL condition that a text contains something besides spaces; null for a null.

    Bronze and silver use the same condition: a row that bronze accepts and silver refuses blocks its whole hour. Tabs
    and NUL are no spaces: such an identifier is odd, but may be a real one.
    """
    return f"trim({text}) <> ''"


def optional(column: Column) -> Column:
    return replace(column, nullable=True)
