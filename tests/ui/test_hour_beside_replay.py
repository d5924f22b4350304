"""An hour that lands while the daemon replays 500 hours is in gold before half of the replay is done."""

from __future__ import annotations

import time
from datetime import date, timedelta
from pathlib import Path

import pytest

from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration import replays
from blogdata.orchestration.replays import TAG, Replay, Since
from blogdata.services.config import load
from ui import backfills
from ui.backfills import UNFINISHED
from ui.served import Served, environment

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(3600)]
DAYS = [(date(2026, 1, 5) + timedelta(days=count)).isoformat() for count in range(21)]
LANDS, GOLD = f"{DAYS[-1]}T23", "gold.audience_hourly"


def test_an_hour_is_in_gold_before_half_of_a_replay_is_done(tmp_path: Path) -> None:
    home = tmp_path / "home"
    served = Served(home=home, environ=environment(home), days=tuple(DAYS))
    try:
        volume = ("--days", str(len(DAYS)), "--visits-per-day", "200", "--seed", "7", "--no-ads")
        served.run("land", "simulate", *volume, "--begin", DAYS[0])
        (*_, flag) = served.flags(DAYS[-1])
        flag.unlink()
        served.run("run")
        events = EventLog(Lake(root=str(load(served.environ).lake)))
        assert len(events.publications("silver.visits")) >= 500
        served.start()
        served.launch("replay", plan_replay={"dataset": "bronze.visits", "partitions": "all"})
        for sensor in ("replay_runs", "whatever_is_stale"):
            served.switch_on(sensor)
        while not (found := replays.unfinished(events)) or not _done(events, found[0]):
            time.sleep(1)
        (replay,) = found
        flag.touch()
        landed = time.monotonic()
        while LANDS not in events.publications(GOLD):
            time.sleep(1)
        took, done, everything = time.monotonic() - landed, _done(events, replay), _asked(replay)
        print(f"in gold after {took:.0f} s; {done} of {everything} partitions of the replay were done")  # noqa: T201
        assert 0 < done < everything / 2
        while replays.unfinished(events):
            time.sleep(2)
        whole = time.monotonic() - landed
        runs = [run for run in backfills.records(served) if TAG in run.tags]
        print(f"the replay ended {whole:.0f} s after the hour had landed")  # noqa: T201
        assert [run.status for run in runs if run.status not in UNFINISHED] in ([], ["SUCCESS"])
    finally:
        if served.process is not None:
            served.stop()
        served.run("down")


def _asked(replay: Replay) -> int:
    return sum(len(run.keys or ("",)) for run in replay.runs)


def _done(events: EventLog, replay: Replay) -> int:
    """Count the partitions published since the replay was requested."""
    since = Since(events, replay.versions)
    return sum(len(since.done(run.datasets, run.keys or ("",), {})) for run in replay.runs)
