"""The files of a table in a local lake."""

from __future__ import annotations

import zlib
from pathlib import Path

from deltalake import DeltaTable

from blogdata.lake.checksums import sums_of
from blogdata.lake.lake import Lake
from toy import CONTRACT


def data_files(lake: Lake, dataset: str = CONTRACT.dataset) -> list[Path]:
    return sorted(map(Path, DeltaTable(lake.path(dataset)).file_uris()))


def log_of(lake: Lake, dataset: str = CONTRACT.dataset) -> Path:
    return Path(lake.path(dataset), "_delta_log")


def seal(file: Path) -> None:
    """Write the checksum file of a file, as Spark does."""
    content = file.read_bytes()
    sums = (zlib.crc32(content[at : at + 512]).to_bytes(4, "big") for at in range(0, len(content), 512))
    sums_of(file).write_bytes(b"crc\0" + (512).to_bytes(4, "big") + b"".join(sums))
