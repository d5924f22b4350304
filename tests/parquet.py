"""How the data files of a lake were written."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq


def codecs(root: Path) -> dict[str, set[str]]:
    """Return the compression of each table's columns, by the table's folder below the root."""
    found: dict[str, set[str]] = {}
    for file in root.rglob("*.parquet"):
        if "_delta_log" in file.parts:
            continue
        written = pq.ParquetFile(file).metadata
        groups = [written.row_group(number) for number in range(written.num_row_groups)]
        used = {group.column(number).compression for group in groups for number in range(group.num_columns)}
        found.setdefault("/".join(file.relative_to(root).parts[:2]), set()).update(used)
    return found
