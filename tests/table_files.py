"""The files of a table in a local lake."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path


def age(folder: Path, moment: datetime, *, since: float = 0) -> None:
    """Make all files of tables those of a moment, and their commits with them; `since`: but for older files."""
    for file in folder.rglob("*"):
        if not file.is_file() or file.stat().st_mtime <= since:
            continue
        if file.parent.name == "_delta_log" and file.name[:20].isdecimal() and file.suffix == ".json":
            actions = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
            for action in actions:
                action.get("commitInfo", {})["timestamp"] = int(moment.timestamp() * 1000)
            file.write_text("".join(json.dumps(action) + "\n" for action in actions), "utf-8")
        os.utime(file, (moment.timestamp(), moment.timestamp()))
