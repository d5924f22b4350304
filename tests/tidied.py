"""Maintenance of which nothing failed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from blogdata.orchestration.upkeep import Done, Due, Fault

Found = TypeVar("Found", Due, Done)


def whole(found: Iterable[Found | Fault]) -> list[Found]:
    """Return what was found or done, after asserting that no error ended any of it."""
    listed = list(found)
    faults = [one.error for one in listed if isinstance(one, Fault)]
    assert faults == []
    return [one for one in listed if not isinstance(one, Fault)]
