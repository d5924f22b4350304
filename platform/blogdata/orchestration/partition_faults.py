"""Joins the faults of several partitions or tables of a step into one error; the others are published, or loaded."""

from __future__ import annotations

from collections.abc import Mapping

from blogdata.errors import PlatformError


def joined(
    faults: Mapping[str, PlatformError], *, where: str, outcome: str, parts: str = "partitions"
) -> PlatformError:
    """Return the fault itself if all partitions have the same one; else an error that lists them."""
    by_text: dict[str, list[str]] = {}
    for key, error in faults.items():
        by_text.setdefault(str(error), []).append(key)
    if len(by_text) == 1:
        return next(iter(faults.values()))
    lines = "".join(f"\n    - {', '.join(keys)}: {text}" for text, keys in by_text.items())
    return PlatformError(
        what=f"{len(faults)} {parts} {outcome}, the others are:{lines}",
        where=where,
        next_step="mend each of them as it says, and run it again",
    )
