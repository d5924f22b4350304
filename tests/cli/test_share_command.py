"""`blogdata share` writes, lists and withdraws the manifest of a dataset."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from blogdata.cli import share_command
from blogdata.errors import ConfigurationError
from blogdata.lake.lake import Lake
from blogdata.patterns.storage.manifest import NotShareable
from blogdata.services import config

STATS = "gold.page_stats"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Two days of a dataset without persons."""
    settings = config.load(overrides={"BLOGDATA_HOME": str(tmp_path)})
    monkeypatch.setattr(share_command, "existing", lambda: settings)
    lake = Lake(root=str(settings.lake))
    rows = {"event_date": ["2026-01-05", "2026-01-06"], "page": ["/a", "/a"], "events": [1, 2]}
    write_deltalake(lake.path(STATS), pa.table(rows), partition_by=["event_date"])
    return lake


def said(capsys: pytest.CaptureFixture[str], dataset: str | None = None, **options: bool) -> str:
    share_command.share(dataset, **options)
    return capsys.readouterr().out


def test_a_share_is_printed_listed_and_withdrawn(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys) == "nothing is shared\n"
    assert said(capsys, STATS, withdraw=True) == f"{STATS} is not shared\n"
    (line,) = said(capsys, STATS).splitlines()[1:]
    assert line.split()[:2] == [STATS, "0"]
    folder = Path(line.split()[-1])
    assert [file.parent.name for file in sorted(folder.resolve().rglob("manifest"))] == [
        "event_date=2026-01-05",
        "event_date=2026-01-06",
    ]
    (listed,) = json.loads(said(capsys, as_json=True))
    assert (listed["files"], listed["rows"], listed["location"]) == (2, 2, str(folder))
    assert "withdrawn: the manifest is gone" in said(capsys, STATS, withdraw=True)
    assert (said(capsys), folder.exists()) == ("nothing is shared\n", False)


def test_what_cannot_be_shared_is_refused(lake: Lake) -> None:
    with pytest.raises(ConfigurationError, match="no dataset is named"):
        share_command.share(withdraw=True)
    with pytest.raises(ConfigurationError, match=r"there is no gold\.visits_cube_daily yet"):
        share_command.share("gold.visits_cube_daily")
    write_deltalake(lake.path("bronze.users"), pa.table({"login": ["ann"]}))
    with pytest.raises(NotShareable, match=r"by .*login"):
        share_command.share("bronze.users")
