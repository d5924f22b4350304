"""Backfills of 112 days by the server, the daemon and real runs: order and limits in the run records.

One backfill depends on its own past (Single Runner), the other has a run per day (Concurrent Runner). Both are started
together, as the UI starts them, and an hour lands while they run.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration.refresh_request import JOB
from blogdata.services.config import load
from ui import backfills
from ui.backfills import BACKFILL, UNFINISHED, RunRecord
from ui.served import Served, environment

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(5400)]
FIRST = date(2026, 1, 5)
*DAYS, NEXT = ((FIRST + timedelta(days=count)).isoformat() for count in range(113))
LANDS = f"{NEXT}T23"
"""The hour that lands while the days before it are backfilled."""
USERS = "silver.users_current"
FILES = "serving.page_stats_files"
LIMIT, BACKFILLS = 5, 2
"""What `dagster.yaml` allows at one time: runs, and runs of backfills."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The deployment after both backfills, and the records of its runs."""

    served: Served
    runs: list[RunRecord]
    users: str
    files: str

    def of(self, backfill: str) -> list[RunRecord]:
        return [run for run in self.runs if run.tags.get(BACKFILL) == backfill]

    @property
    def hour(self) -> RunRecord:
        """The first run that the sensor requested."""
        return next(run for run in self.runs if run.job == JOB and "dagster/sensor_name" in run.tags)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    home = tmp_path_factory.mktemp("backfills") / "home"
    served = Served(home=home, environ=environment(home), days=(*DAYS, NEXT))
    try:
        volume = ("--days", str(len(DAYS) + 1), "--visits-per-day", "50", "--seed", "7", "--no-ads")
        served.run("land", "simulate", *volume, "--begin", DAYS[0])
        _keep_an_hour_a_day(home / "landing" / "visits")
        late = home / "landing" / "visits" / f"date={LANDS[:10]}" / f"hour={LANDS[11:]}" / "_SUCCESS"
        late.unlink()
        served.run("run", "--for", "gold.page_stats")
        served.start()
        users = backfills.launch(served, DAYS, USERS)
        files = backfills.launch(served, DAYS, FILES)
        _until(lambda: len(_ended(served, files)) >= 4, "the first days' files")
        late.touch()
        sensor = served.switch_on("whatever_is_stale")
        _until(lambda: bool(_ended(served, users)), "the backfill of users")
        _until(lambda: len(_ended(served, files)) == len(DAYS), "every day's files")
        # Its next request would not have ended when the records are read.
        served.switch_off(sensor)
        _until(lambda: _is_quiet(served), "the end of all runs")
        _until(lambda: "REQUESTED" not in _statuses(served, users, files), "the end of the backfills")
        assert _statuses(served, users, files) == ["COMPLETED_SUCCESS"] * 2
        yield Ended(served=served, runs=backfills.records(served), users=users, files=files)
    finally:
        if served.process is not None:
            served.stop()
        served.run("down")


def test_days_that_build_on_one_another_are_one_run_in_order(ended: Ended) -> None:
    (run,) = ended.of(ended.users)
    assert run.tags["dagster/asset_partition_range_start"] == DAYS[0]
    assert run.tags["dagster/asset_partition_range_end"] == DAYS[-1]
    events = EventLog(Lake(root=str(load(ended.served.environ).lake)))
    executed = sorted(events.executions(USERS), key=lambda mark: mark.version)
    # The day after them landed meanwhile, and is executed by another run.
    marks = [mark for mark in executed if mark.partition in DAYS]
    assert [mark.partition for mark in marks] == list(DAYS), "each day once, and the oldest first"
    assert all(mark.restored is None for mark in marks), "nothing was restored and repeated"
    assert {mark.run_id for mark in marks} == {run.run_id}, "and by no other run"
    assert all(one.version < other.version for one, other in pairwise(marks))


def test_independent_days_are_runs_of_their_own(ended: Ended) -> None:
    runs = ended.of(ended.files)
    assert sorted(run.tags["dagster/partition"] for run in runs) == list(DAYS)
    assert {run.status for run in runs} == {"SUCCESS"}
    assert 1 <= backfills.most_at_once(runs) <= BACKFILLS, "two at once if the other backfill ends first"


def test_the_limits_hold_from_beginning_to_end(ended: Ended) -> None:
    assert backfills.most_at_once(run for run in ended.runs if BACKFILL in run.tags) == BACKFILLS
    assert backfills.most_at_once(ended.runs) <= LIMIT


def test_an_hour_that_lands_is_not_behind_the_backfills(ended: Ended) -> None:
    hour = ended.hour
    assert hour.started is not None
    queued = [run for run in ended.of(ended.files) if run.started is not None and run.started > hour.started]
    assert len(queued) > len(DAYS) / 2, "most of the backfill was still queued"
    overtook = [run for run in ended.of(ended.files) if run.started and hour.created < run.started < hour.started]
    # Runs that the queue had already started when the hour was queued.
    assert len(overtook) <= BACKFILLS
    published = EventLog(Lake(root=str(load(ended.served.environ).lake))).publications("bronze.visits")
    assert published[LANDS].run_id == hour.run_id


def _keep_an_hour_a_day(visits: Path) -> None:
    """An hour with few rows costs as much as one with many, and the backfills are by day."""
    for hour in visits.glob("date=*/hour=*"):
        if hour.name != f"hour={LANDS[11:]}":
            shutil.rmtree(hour)


def _ended(served: Served, backfill: str) -> list[RunRecord]:
    return [
        run for run in backfills.records(served) if run.tags.get(BACKFILL) == backfill and run.status not in UNFINISHED
    ]


def _is_quiet(served: Served) -> bool:
    return all(run.status not in UNFINISHED for run in backfills.records(served))


def _statuses(served: Served, *launched: str) -> list[str]:
    return [backfills.status(served, backfill) for backfill in launched]


def _until(holds: Callable[[], bool], what: str, seconds: float = 2400) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"no {what} within {seconds:.0f} s"
        time.sleep(2)
