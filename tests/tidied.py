"""Maintenance of which nothing failed."""

from __future__ import annotations

from collections.abc import Iterable

from blogdata.runs.upkeep import Done, Fault


def whole(found: Iterable[Done | Fault]) -> list[Done]:
    """Return what was done, after asserting that no error ended any of it."""
    listed = list(found)
    faults = [one.error for one in listed if isinstance(one, Fault)]
    assert faults == []
    return [one for one in listed if not isinstance(one, Fault)]
