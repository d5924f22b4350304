"""The files of a table in a local lake."""

from __future__ import annotations

import json
import os
import zlib
from datetime import datetime
from pathlib import Path

from deltalake import DeltaTable

from blogdata.lake.checksums import sums_of
from blogdata.lake.lake import Lake
from toy import CONTRACT


def data_files(lake: Lake, dataset: str = CONTRACT.dataset) -> list[Path]:
    return sorted(map(Path, DeltaTable(lake.path(dataset)).file_uris()))


def log_of(lake: Lake, dataset: str = CONTRACT.dataset) -> Path:
    return Path(lake.path(dataset), "_delta_log")


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


def seal(file: Path) -> None:
    """Write the checksum file of a file, as Spark does."""
    content = file.read_bytes()
    sums = (zlib.crc32(content[at : at + 512]).to_bytes(4, "big") for at in range(0, len(content), 512))
    sums_of(file).write_bytes(b"crc\0" + (512).to_bytes(4, "big") + b"".join(sums))
