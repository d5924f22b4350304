"""`blogdata sql --as-of` reads every table as it was at one time, also tables whose last change is older."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from blogdata.cli.output import Terminal, TextGrid
from blogdata.deliver.query import Query, version_at
from blogdata.errors import ConfigurationError
from blogdata.table.lake import Lake


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    """A table with two versions."""
    found = Lake(root=str(lake_root))
    for value in (1, 2):
        write_deltalake(found.path("gold.page_stats"), pa.table({"events": [value]}), mode="overwrite")
        # Times of commits have milliseconds.
        time.sleep(0.002)
    return found


def times(lake: Lake) -> list[datetime]:
    table = lake.caught_up("gold.page_stats")
    assert table is not None
    stamps = sorted(entry["timestamp"] for entry in table.history())
    return [datetime.fromtimestamp(stamp / 1000, tz=timezone.utc) for stamp in stamps]


def test_a_time_whose_files_are_gone_is_refused_without_spark(lake: Lake) -> None:
    first, second = times(lake)
    assert version_at(lake, "gold.page_stats", second + timedelta(days=1)) == 1
    asked = "SELECT * FROM gold.page_stats"
    assert Query.of(lake, asked, second).versions == {"gold.page_stats": 1}
    table = lake.caught_up("gold.page_stats")
    assert table is not None
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(ConfigurationError, match="can no longer be read") as refused:
        Query.of(lake, asked, first)
    assert refused.value.next_step == "give a later time: what was replaced less than 7 days ago is kept"


def test_values_are_not_broken_by_a_narrow_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    file, reason = "visits/date=2026-01-05/hour=12/visits-00000.json", "missing_field:" + "x" * 90
    table = TextGrid()
    for name in ("source_file", "source_offset", "reasons"):
        table.add_column(name, no_wrap=True)
    table.add_row(file, "36787", reason)
    Terminal(width=40).print(table)
    assert capsys.readouterr().out.splitlines()[-1].split() == [file, "36787", reason]
