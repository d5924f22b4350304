"""Events of a table that the lake lost count no more, and its versions never come twice; without Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import published
from blogdata.evidence import ledger
from blogdata.evidence.events import EventLog
from blogdata.evidence.repair import shape_of
from blogdata.lake import log_anew
from blogdata.planning.arrivals import removed
from blogdata.planning.clock import now
from blogdata.planning.findings import lost
from blogdata.planning.observed import Observed
from blogdata.planning.plan import LOST, Planner
from blogdata.planning.snapshot import Snapshot
from quality.contracts import CONTRACTS, GRAPH

BRONZE = "bronze.visits"
HOURS = ("2026-01-05T10", "2026-01-05T11")


def gone(folder: Path) -> None:
    """Remove a table."""
    shutil.rmtree(folder)


def older(folder: Path) -> None:
    """Put back what a table was before its newest version."""
    newest = max((folder / "_delta_log").glob("*.json"))
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("harm", [gone, older])
def test_a_lost_table_is_stale_told_and_begins_with_a_new_version(tmp_path: Path, harm: object) -> None:
    home = published.deployment(tmp_path)
    lake, folder = home.lake, Path(home.lake.path(BRONZE))
    for hour in HOURS:
        published.land(home, "visits", hour, {"a.json": "{}\n"})
        version = published.bronze(lake, {hour: {hour: 1}})
    assert set(EventLog(lake).publications(BRONZE)) == set(HOURS)
    shape = shape_of(folder / "_delta_log")
    harm(folder)  # type: ignore[operator]
    events = EventLog(lake)
    assert (events.gone(BRONZE), events.publications(BRONZE), events.publications(BRONZE, HOURS)) == (version, {}, {})
    look = Snapshot(home.landing_zone, events)
    (planned,) = (run for run in Planner(graph=GRAPH, look=look).outstanding().runs if run.task.main == BRONZE)
    assert (planned.keys, dict(planned.reasons)) == (HOURS, {LOST: 2})
    assert [one.dataset for one in lost(Observed(graph=GRAPH, look=look, now=now()))] == [BRONZE]
    (line,) = ledger.audit(lake, events, CONTRACTS[BRONZE])
    assert f"version {version} was published, and the table is gone or older" in str(line.problem)
    events.begin_anew(BRONZE)
    log_anew.replace(folder, version + 1, shape)
    assert (lake.version(BRONZE), lake.row_counts(BRONZE, "arrival_hour")) == (version + 1, {})
    assert (events.publications(BRONZE), events.history(BRONZE), events.gone(BRONZE)) == ({}, [], -1)
    assert published.bronze(lake, {HOURS[0]: {HOURS[0]: 1}}) == version + 2
    assert list(events.publications(BRONZE)) == list(events.publications(BRONZE, since=HOURS[0])) == [HOURS[0]]
    assert [found.problem for found in ledger.audit(lake, events, CONTRACTS[BRONZE])] == [None]
    # One of its landed hours is removed.
    shutil.rmtree(home.landing_path / "visits" / "date=2026-01-05" / "hour=10")
    told = removed(CONTRACTS[BRONZE], Snapshot(home.landing_zone, events))
    assert f"the landed files of {HOURS[0]} are gone" in str(told)
