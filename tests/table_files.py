"""The data files of a table in a local lake."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable

from blogdata.lake.lake import Lake
from toy import CONTRACT


def data_files(lake: Lake, dataset: str = CONTRACT.dataset) -> list[Path]:
    return sorted(map(Path, DeltaTable(lake.path(dataset)).file_uris()))


def log_of(lake: Lake, dataset: str = CONTRACT.dataset) -> Path:
    return Path(lake.path(dataset), "_delta_log")
