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
count = partial(Column, type="BIGINT", nullable=False)
measure = partial(Column, type="DOUBLE", nullable=False)
flag = partial(Column, type="BOOLEAN", nullable=False)
of_user = partial(Column, type="STRING", subject=USER_DIRECT)
user_time = partial(Column, type="TIMESTAMP", subject=USER_QUASI)
of_visitor = partial(Column, type="STRING", subject=VISITOR_DIRECT)
pseudonym = partial(Column, type="STRING", subject=VISITOR_PSEUDONYM, nullable=False)
quasi = partial(Column, type="STRING", subject=VISITOR_QUASI)
"""A text that may lead to a visitor together with others; null if it is not known."""

ARRIVAL_HOUR = text(name="arrival_hour", description="Hour of arrival, 2026-01-31T05 (UTC)")
EVENT_HOUR = text(name="event_hour", description="Hour of the event, 2026-01-31T05 (UTC)")
DISPLAY_HOUR = text(name="display_hour", description="Hour of the display, 2026-01-31T05 (UTC)")
EVENT_DATE = text(name="event_date", description="Day of the events, 2026-01-31 (UTC)")
EVENT_WEEK = text(name="event_week", description="Monday of the week of the events (UTC)")
LOAD_DATE = text(name="load_date", description="Day whose delivery the row came with (UTC)")
RAW = Column(
    name="raw",
    type="BINARY",
    subject=VISITOR_DIRECT,
    nullable=False,
    description="The line as received, byte for byte, without its line feed",
)
SOURCE = (
    text(name="source_file", description="File in the landing zone, relative to it"),
    count(name="source_offset", description="Byte at which the line begins in the decompressed file"),
)
FORMAT = text(
    name="format",
    description="json (visit event), or the format of an access log line: combined, main, ...; log if it fits none",
)
REASONS = fact(
    name="reasons",
    type="ARRAY<STRING>",
    nullable=False,
    description="Why the row is rejected: all reasons; empty if it is not",
)
VISIT = (
    pseudonym(name="visit_id", description="One browsing session of one browser"),
    time(name="event_time", description="When the page was opened in the browser"),
    of_user(name="user_id", nullable=False, description="The visitor; joins silver.users"),
    flag(name="keep_private", description="The visitor asked not to be shared; true when the event does not say"),
    text(name="page", description="Path of the page, without its query"),
    of_visitor(name="referral", description="URL the visitor came from, with its query"),
    fact(name="ad_id", type="STRING", description="The ad that was clicked"),
)
UTM = fact(
    name="utm",
    type="STRING",
    description="Campaign of the followed link: utm source / medium / campaign, - for a missing one; null without any",
)
REQUEST = (
    of_visitor(name="client", description="Address, or host name, that a request of an access log came from"),
    of_visitor(name="agent", description="Agent of a request, as sent: any text"),
    fact(name="host", type="STRING", description="Host that was asked; null if it is no name of a host"),
    fact(name="method", type="STRING", description="Method of the request; null if it is none of HTTP"),
    fact(name="status", type="STRING", description="Status of the answer; null if it is none of HTTP"),
    Column(name="bytes", type="BIGINT", description="Bytes of the answer"),
    Column(name="is_asset", type="BOOLEAN", description="The request is for a file that belongs to pages"),
    Column(name="is_feed", type="BOOLEAN", description="The request is for a feed"),
)
"""Columns of lines of access logs; null for visit events."""
IDENTIFIERS = ("visit_id", "user_id")
"""Columns of a visit that must not be blank: a blank value identifies nobody."""
AD = (
    text(name="ad_id", description="The ad; joins the ad of a visit's events"),
    text(name="page", description="Path of the page that showed it"),
    pseudonym(name="visit_id", description="The browsing session that saw it"),
    time(name="display_time", description="When it was shown in the browser"),
    text(name="campaign", description="The campaign it belongs to"),
)
AD_IDENTIFIERS = ("ad_id", "visit_id")
"""Columns of a displayed ad that must not be blank."""
CONTEXT = (
    quasi(name="browser", description="Browser family"),
    quasi(name="browser_version", description="Browser version as sent"),
    quasi(name="network_type", description="Network of the device"),
    quasi(name="device_type", description="Device type; joins silver.devices"),
    quasi(name="device_version", description="Device version; joins silver.devices"),
)
IDENTITY = (
    of_visitor(name="ip", description="Address of the visitor"),
    of_user(name="login", description="Login, when connected"),
    user_time(name="connected_since", description="Since when the visitor is connected; null when not"),
)
CALLED = (
    of_user(name="login", description="Login of the user"),
    of_user(name="email", description="Address of the user"),
)
"""What a user is called by; from silver on, silver.identities has it."""
IDENTITY_TOKEN = Column(
    name="identity",
    type="STRING",
    subject=USER_PSEUDONYM,
    description="Keyed hash of the user, the login and the e-mail, which silver.identities has by it",
)
USER = (
    *CALLED,
    user_time(name="registered_datetime", description="When the user registered"),
    user_time(name="first_connection_datetime", description="First connection, if any"),
    user_time(name="last_connection_datetime", description="Last connection, if any"),
)


def filled(text: str) -> str:
    """Build the SQL condition that a text is not blank: it contains something besides spaces.

    Bronze rejects blank values where silver requires a value, and both use this condition: a row that bronze accepts
    and silver refuses blocks the publication of its whole hour. Blank counts as missing in every identifier (a user's
    `id`, a device's `type` and `version`, those of a visit): otherwise a visit could name a user who can never be
    delivered. Tabs and NUL are not spaces: such an identifier is odd, but may be a real one.

    Args:
        text: SQL expression of a STRING; the condition is null where the text is null.
    """
    return f"trim({text}) <> ''"


def optional(column: Column) -> Column:
    return replace(column, nullable=True)
