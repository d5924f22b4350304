"""`blogdata versions` lists which copy readers saw when, and `blogdata sql` reads the copy of a given time."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from blogdata.cli import versions_command
from blogdata.cli.sql_command import version_at
from blogdata.errors import ConfigurationError
from blogdata.lake import members
from blogdata.lake.lake import Lake
from blogdata.lake.members import Member
from blogdata.services import config

NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Two copies of the devices, the second of which is visible."""
    settings = config.load(overrides={"BLOGDATA_HOME": str(tmp_path)})
    monkeypatch.setattr(versions_command, "existing", lambda: settings)
    lake = Lake(root=str(settings.lake))
    for number in range(2):
        seen = members.seen(lake, "bronze.devices")
        location = f"v2026-01-0{5 + number}"
        write_deltalake(
            lake.path(members.table_of("bronze.devices", location)), pa.table({"type": ["PC"] * (number + 1)})
        )
        copy = Member(
            name=location,
            location=location,
            version=0,
            partition_column=None,
            columns={"type": "STRING"},
            frozen=False,
            rows_of={"": number + 1},
            run_id=f"run-{number}",
            since_version=number,
            visible_from=NOON + timedelta(days=number),
        )
        rows = [*seen.superseded({""}, number, copy.visible_from), copy]
        assert members.commit(lake, "bronze.devices", seen, rows, {}) == number
    return lake


def test_each_copy_shows_its_time_run_and_rows(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    versions_command.versions("bronze.devices", as_json=True)
    first, second = json.loads(capsys.readouterr().out)
    assert (first["visible_from"], first["visible_until"]) == ("2026-01-05T12:00:00+00:00", "2026-01-06T12:00:00+00:00")
    assert (second["visible_until"], second["visible"], second["table_version"]) == (None, True, 1)
    assert [(one["rows"], one["run_id"], one["removed_at"]) for one in (first, second)] == [
        (1, "run-0", None),
        (2, "run-1", None),
    ]
    versions_command.versions("bronze.devices", as_json=False)
    shown = capsys.readouterr().out
    assert "run-0" in shown
    assert "visible" in shown


def test_only_copies_visible_at_a_time_are_shown(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for at in ("2026-01-05T11:59:59", "2026-01-05T12:00:00", "2026-01-06T11:59:59+00:00", "2026-01-06T13:00:00+01:00"):
        versions_command.versions("bronze.devices", at=at, as_json=True)
        shown[at] = [one["run_id"] for one in json.loads(capsys.readouterr().out)]
    assert list(shown.values()) == [[], ["run-0"], ["run-0"], ["run-1"]]
    versions_command.versions("bronze.devices", at="2026-01-05")
    assert "nothing was visible by then" in capsys.readouterr().out
    with pytest.raises(ConfigurationError, match="not a time"):
        versions_command.versions("bronze.devices", at="noon")


def test_a_time_reads_the_copy_of_that_time(lake: Lake) -> None:
    table = lake.caught_up("bronze.devices")
    assert table is not None
    first, second = (
        datetime.fromtimestamp(entry["timestamp"] / 1000, tz=timezone.utc) for entry in reversed(table.history())
    )
    assert lake.row_counts("bronze.devices", None, version_at(lake, "bronze.devices", second)) == {"": 2}
    if first < second:
        assert lake.row_counts("bronze.devices", None, version_at(lake, "bronze.devices", first)) == {"": 1}


def test_a_dataset_without_copies_is_refused_with_alternatives(lake: Lake) -> None:
    write_deltalake(lake.path("gold.page_stats"), pa.table({"page": ["/"]}))
    with pytest.raises(ConfigurationError, match=r"gold\.page_stats is one table") as refused:
        versions_command.versions("gold.page_stats")
    assert "bronze.devices, gold.visits_weekly" in refused.value.next_step
