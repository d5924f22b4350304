"""After which silence a visitor's session, and a visit of an access log, is over."""

from datetime import timedelta

INACTIVITY = timedelta(minutes=30)
"""It goes on until a silence is longer than this."""
