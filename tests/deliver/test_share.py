"""The function of the job `share` writes, lists and withdraws the manifest of a dataset."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from blogdata.deliver.share import share
from blogdata.errors import PlatformError
from blogdata.table.lake import DatasetMissing, Lake

STATS = "gold.page_stats"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(root=str(tmp_path))
    rows = {"event_date": ["2026-01-05", "2026-01-06"], "page": ["/a", "/a"], "events": [1, 2]}
    write_deltalake(lake.path(STATS), pa.table(rows), partition_by=["event_date"])
    return lake


def test_what_cannot_be_shared_is_refused(lake: Lake) -> None:
    with pytest.raises(DatasetMissing, match=r"gold\.visits_cube_daily has no table yet"):
        share(lake, "gold.visits_cube_daily", withdraw=False)
    write_deltalake(lake.path("bronze.users"), pa.table({"login": ["ann"]}))
    with pytest.raises(PlatformError, match=r"by .*login"):
        share(lake, "bronze.users", withdraw=False)
