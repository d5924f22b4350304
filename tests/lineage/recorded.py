"""Compares counts with recorded ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def risen(
    found: Mapping[str, Any], *, record: Path, now: Path, more: Callable[[str, Any], list[str]]
) -> dict[str, list[str]]:
    """List the counts that are higher than recorded.

    Args:
        found: Counts by name, as plain values.
        record: File of the recorded ones.
        now: File to write them to; copy it over the record to accept higher counts on purpose.
        more: Takes a name and its recorded counts; describes the higher ones, before and after.

    Returns:
        The higher counts by name; other names are omitted.
    """
    now.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    known = json.loads(record.read_text(encoding="utf-8"))
    lines = {name: more(name, known[name]) for name in found}
    return {name: [*each, f"on purpose? cp {now} {record}"] for name, each in lines.items() if each}
