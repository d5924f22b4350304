"""Files outside of a table's folders are named, and no name reaches a log or a terminal raw."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from pathlib import Path

import pytest

from blogdata.contract.partitions import Grain
from blogdata.landing.log_splitter import refused_logs
from blogdata.landing.readiness_marker import mark
from blogdata.ledger.events import EventLog
from blogdata.planning.arrivals import Arrivals, warnings
from blogdata.planning.snapshot import Snapshot
from blogdata.table.lake import Lake
from quality.contracts import CONTRACTS

VISITS = CONTRACTS["bronze.visits"]
ASTRAY = (
    "visits.json",
    "date=2026-01-05/visits.json",
    "2026-01-05/hour=03/visits.json",
    "DATE=2026-01-05/hour=03/visits.json",
    "date=2026-01-05/Hour=03/visits.json",
    "date=2026-01-05/03/visits.json",
    "date=2026-01-05/hour=04",
)


def put(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}\n")
    return file


def said(landing: Path) -> list[str]:
    events = EventLog(Lake(root=str(landing.parent / "lake")))
    return warnings([VISITS], Snapshot(landing, events), datetime.now(timezone.utc))


@pytest.mark.parametrize("name", ASTRAY)
def test_files_outside_of_all_hours_are_named(tmp_path: Path, name: str) -> None:
    landing = tmp_path / "landing"
    put(landing / "visits" / "date=2026-01-05" / "hour=03" / "visits.json")
    mark(landing / "visits" / "date=2026-01-05" / "hour=03")
    assert not any("outside" in line for line in said(landing))
    put(landing / "visits" / name)
    (warning,) = [line for line in said(landing) if "outside" in line]
    # The first folder that is no partition is named once, whatever it contains.
    (entry,) = Arrivals.of(VISITS, landing).zone.astray("visits", Grain.HOUR)
    assert str(landing / "visits" / name).startswith(entry)
    assert entry in warning
    assert "date=YYYY-MM-DD/hour=HH" in warning


def test_no_name_reaches_a_log_or_a_terminal_raw(tmp_path: Path) -> None:
    landing, evil = tmp_path / "landing", "\x1b]0;owned\x07\n2026 error\u202e.log"
    hour = landing / "visits" / "date=2026-01-05" / "hour=03"
    put(hour / "early.json")
    mark(hour)
    time.sleep(0.02)
    put(hour / evil)
    put(landing / "visits" / evil)
    mark(put(landing / "visits" / f"date={evil}" / "hour=03" / "a.json").parent)
    (hour.with_name("hour=04") / evil).mkdir(parents=True)
    (hour.with_name("hour=04") / evil / evil).symlink_to("/etc/passwd")
    put(landing / "access_logs" / evil / "a.log")
    found = Arrivals.of(VISITS, landing)
    lines = [
        *said(landing),
        *(text for one in found.refused for link in one.links for text in (str(link), link.refusal().where)),
        *(str(one) for one in refused_logs(landing)),
    ]
    assert sum("owned" in line for line in lines) >= 5
    assert {line for line in lines if not line.isprintable()} == set()
