"""Totals of long model runs, a line each: ten thousand steps take hours and may be run in parts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from chaos.certificates import ROOT, code_version

FOLDER = ROOT / "var" / "model"


def keep(made: Mapping[str, int], *, counterexample: bool, folder: Path = FOLDER) -> str:
    """Store a run, and format the totals of all runs on this code.

    Args:
        made: Number of steps by rule.
        counterexample: Whether one was found.
        folder: Folder of the stored runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "runs.jsonl"
    row: dict[str, Any] = {
        "code": code_version(),
        "ended_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "made": dict(sorted(made.items())),
        "counterexample": counterexample,
    }
    with file.open("a") as runs:
        runs.write(json.dumps(row) + "\n")
    known = [each for line in file.read_text().splitlines() if (each := json.loads(line))["code"] == row["code"]]
    total = sum((Counter(each["made"]) for each in known), Counter[str]())
    return (
        f"{total.total():,} steps on this code in {len(known)} runs, {sum(each['counterexample'] for each in known)} "
        f"counterexamples: {dict(sorted(total.items()))}"
    )
