"""Compares counts with those that were recorded when somebody last looked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def risen(
    found: Mapping[str, Any], *, record: Path, now: Path, more: Callable[[str, Any], list[str]]
) -> dict[str, list[str]]:
    """List what is more than is recorded.

    Args:
        found: Counts by what they are of, as plain values.
        record: File of the recorded ones.
        now: File to write them to: a copy of it over the record is how a count is raised, on purpose.
        more: Takes a name and what is recorded of it, and describes what is more now, before and after.

    Returns:
        By name, what is more; names of which nothing is are left out.
    """
    now.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    known = json.loads(record.read_text(encoding="utf-8"))
    lines = {name: more(name, known[name]) for name in found}
    return {name: [*each, f"on purpose? cp {now} {record}"] for name, each in lines.items() if each}
