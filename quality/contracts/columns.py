"""Columns that mean the same in every dataset that has them."""

from __future__ import annotations

from dataclasses import replace

from blogdata.publish.schema import Classification, Column

PERSONAL = Classification.PERSONAL
UNKNOWN = "unknown"
"""Value of a dimension that is null or empty, where page views are counted by it."""
DIRECT = "direct"
"""The host that a visitor came from, when there is none."""

ARRIVAL_HOUR = Column(
    name="arrival_hour", type="STRING", nullable=False, description="Hour of arrival, 2026-01-31T05 (UTC)"
)
EVENT_HOUR = Column(
    name="event_hour", type="STRING", nullable=False, description="Hour of the event, 2026-01-31T05 (UTC)"
)
DISPLAY_HOUR = Column(
    name="display_hour", type="STRING", nullable=False, description="Hour of the display, 2026-01-31T05 (UTC)"
)
EVENT_DATE = Column(name="event_date", type="STRING", nullable=False, description="Day of the events, 2026-01-31 (UTC)")
EVENT_WEEK = Column(
    name="event_week", type="STRING", nullable=False, description="Monday of the week of the events (UTC)"
)
LOAD_DATE = Column(
    name="load_date", type="STRING", nullable=False, description="Day whose delivery the row came with (UTC)"
)
RAW = Column(
    name="raw",
    type="BINARY",
    nullable=False,
    classification=PERSONAL,
    description="The line as received, byte for byte, without its line feed",
)
SOURCE = (
    Column(
        name="source_file",
        type="STRING",
        nullable=False,
        description="File in the landing zone, relative to it",
    ),
    Column(
        name="source_offset",
        type="BIGINT",
        nullable=False,
        description="Byte at which the line begins in the decompressed file",
    ),
)
FORMAT = Column(
    name="format",
    type="STRING",
    nullable=False,
    description="json (visit event), or the format of an access log line: combined, main, ...; log if it fits none",
)
REASONS = Column(
    name="reasons",
    type="ARRAY<STRING>",
    nullable=False,
    description="Why the row is rejected: all reasons; empty if it is not",
)
VISIT = (
    Column(name="visit_id", type="STRING", nullable=False, description="One browsing session of one browser"),
    Column(
        name="event_time",
        type="TIMESTAMP",
        nullable=False,
        description="When the page was opened in the browser",
    ),
    Column(name="user_id", type="STRING", nullable=False, description="The visitor; joins silver.users"),
    Column(
        name="keep_private",
        type="BOOLEAN",
        nullable=False,
        description="The visitor asked not to be shared; true when the event does not say",
    ),
    Column(name="page", type="STRING", nullable=False, description="Path of the page, without its query"),
    Column(name="referral", type="STRING", description="Where the visitor came from"),
    Column(name="ad_id", type="STRING", description="The ad that was clicked"),
)
UTM = Column(
    name="utm",
    type="STRING",
    description="Campaign of the followed link: utm source / medium / campaign, - for a missing one; null without any",
)
IDENTIFIERS = ("visit_id", "user_id")
"""Columns of a visit that must not be blank: a blank value identifies nobody."""
AD = (
    Column(name="ad_id", type="STRING", nullable=False, description="The ad; joins the ad of a visit's events"),
    Column(name="page", type="STRING", nullable=False, description="Path of the page that showed it"),
    Column(name="visit_id", type="STRING", nullable=False, description="The browsing session that saw it"),
    Column(name="display_time", type="TIMESTAMP", nullable=False, description="When it was shown in the browser"),
    Column(name="campaign", type="STRING", nullable=False, description="The campaign it belongs to"),
)
AD_IDENTIFIERS = ("ad_id", "visit_id")
"""Columns of a displayed ad that must not be blank."""
CONTEXT = (
    Column(name="browser", type="STRING", description="Browser family"),
    Column(name="browser_version", type="STRING", description="Browser version as sent"),
    Column(name="network_type", type="STRING", description="Network of the device"),
    Column(name="device_type", type="STRING", description="Device type; joins silver.devices"),
    Column(name="device_version", type="STRING", description="Device version; joins silver.devices"),
)
IDENTITY = (
    Column(name="ip", type="STRING", classification=PERSONAL, description="Address of the visitor"),
    Column(name="login", type="STRING", classification=PERSONAL, description="Login, when connected"),
    Column(
        name="connected_since",
        type="TIMESTAMP",
        description="Since when the visitor is connected; null when not",
    ),
)
USER = (
    Column(name="login", type="STRING", classification=PERSONAL, description="Login of the user"),
    Column(name="email", type="STRING", classification=PERSONAL, description="Address of the user"),
    Column(name="registered_datetime", type="TIMESTAMP", description="When the user registered"),
    Column(name="first_connection_datetime", type="TIMESTAMP", description="First connection, if any"),
    Column(name="last_connection_datetime", type="TIMESTAMP", description="Last connection, if any"),
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
    """Return the same column, nullable."""
    return replace(column, nullable=True)
