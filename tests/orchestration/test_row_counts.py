"""Dagster's row count of a dataset covers the whole dataset; an hour's count has another name."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from blogdata.lake.commit import Commit, entries_of, parse
from blogdata.lake.lake import Lake
from blogdata.orchestration.computation import Publication
from published import deployment, publish
from quality.contracts import CONTRACTS

DATASET = "silver.visits"
FIRST, SECOND = "2026-01-05T03", "2026-01-05T04"


def published(lake: Lake, hour: str, rows: int) -> Publication:
    content = pa.table({"event_hour": [hour] * rows, "number": range(rows)})
    version = publish(lake, DATASET, "event_hour", {hour: rows}, content=content)
    table = lake.table(DATASET)
    assert table is not None
    info = parse(dict(lake.commits(table))[version].get("userMetadata"))
    assert info is not None
    step: Any = SimpleNamespace(
        lake=lake, landing=Path("landing"), partitions=(hour,), run=SimpleNamespace(code_version="code")
    )
    commit = Commit(dataset=DATASET, version=version, entries=entries_of(DATASET, version, info), info=info)
    return Publication(contract=CONTRACTS[DATASET], step=step, commit=commit, seconds=1.0)


def test_an_hours_rows_are_not_the_datasets(tmp_path: Path) -> None:
    lake = deployment(tmp_path).lake
    published(lake, FIRST, 2)
    (event,) = published(lake, SECOND, 3).materializations()
    found = {name: event.metadata[name].value for name in ("dagster/row_count", "dagster/partition_row_count")}
    assert found == {"dagster/row_count": 5, "dagster/partition_row_count": 3}
