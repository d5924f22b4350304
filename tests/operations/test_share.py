"""The function of the job `share` writes, lists and withdraws the manifest of a dataset."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from blogdata.errors import ConfigurationError, PlatformError
from blogdata.lake.lake import DatasetMissing, Lake
from blogdata.operations.share import share
from blogdata.patterns.storage import manifest

STATS = "gold.page_stats"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two days of a dataset without persons."""
    lake = Lake(root=str(tmp_path))
    rows = {"event_date": ["2026-01-05", "2026-01-06"], "page": ["/a", "/a"], "events": [1, 2]}
    write_deltalake(lake.path(STATS), pa.table(rows), partition_by=["event_date"])
    return lake


def test_a_share_is_listed_and_withdrawn(lake: Lake) -> None:
    assert share(lake, "", withdraw=False) == []
    (made,) = share(lake, STATS, withdraw=False)
    folder = manifest.location(lake, STATS)
    assert [file.parent.name for file in sorted(folder.resolve().rglob("manifest"))] == [
        "event_date=2026-01-05",
        "event_date=2026-01-06",
    ]
    assert share(lake, "", withdraw=False) == [made]
    assert (made.version, made.files, made.rows) == (0, 2, 2)
    assert share(lake, STATS, withdraw=True) == []
    assert not folder.exists()


def test_what_cannot_be_shared_is_refused(lake: Lake) -> None:
    with pytest.raises(ConfigurationError, match="no dataset is named"):
        share(lake, "", withdraw=True)
    with pytest.raises(ConfigurationError, match=f"{STATS} is not shared"):
        share(lake, STATS, withdraw=True)
    with pytest.raises(DatasetMissing, match=r"gold\.visits_cube_daily has no table yet"):
        share(lake, "gold.visits_cube_daily", withdraw=False)
    write_deltalake(lake.path("bronze.users"), pa.table({"login": ["ann"]}))
    with pytest.raises(PlatformError, match=r"by .*login"):
        share(lake, "bronze.users", withdraw=False)
