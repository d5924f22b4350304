"""The hand-written script's places of addresses, by the package `iptocc`."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from datetime import datetime, timezone

import iptocc

COLUMNS = ("ip", "valid_from", "valid_until", "outcome", "country", "region", "city", "told_by")
TIMES = ("valid_from", "valid_until")
_ALWAYS = datetime(1970, 1, 1, tzinfo=timezone.utc)
Row = tuple[str, datetime, None, str, str | None, None, None, str]


def answers(addresses: Collection[str]) -> list[Row]:
    """Look addresses up; the rows have the columns of :data:`COLUMNS`."""
    public = [address for address in addresses if ipaddress.ip_address(address).is_global]
    codes = dict(zip(public, iptocc.country_code(public), strict=True))
    found = {one: ("found" if code else "unknown", code) for one, code in codes.items()}
    return [
        (one, _ALWAYS, None, outcome, code, None, None, "here")
        for one in addresses
        for outcome, code in [found.get(one, ("reserved", None))]
    ]
