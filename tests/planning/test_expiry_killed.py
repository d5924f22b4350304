"""An expiry that is killed at ten moments is completed by the next one; no row leaves without being counted, once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from blogdata.evidence import ledger
from blogdata.evidence.events import EVENTS
from blogdata.orchestration.expiry import Retention
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.patterns.ingestion import published_files
from blogdata.publish.partitions import Grain, finer
from planning.test_a_year_of_days import LINEAGE, RUN, put
from published import deployment, land
from quality.contracts import CONTRACTS

pytestmark = pytest.mark.campaign
DAY = "2025-01-01"
HOURS = finer(DAY, Grain.DAY, Grain.HOUR)
ROWS: Mapping[str, Mapping[str, int]] = {
    "gold.page_stats": {DAY: 2},
    "silver.visits": dict.fromkeys(HOURS, 2),
    "bronze.visits": dict.fromkeys(HOURS, 3),
}
NOW = datetime(2025, 1, 31, 13, tzinfo=timezone.utc)
"""Half of the hours have expired, and the day has not."""
LATER = NOW + timedelta(days=1)
EXPIRING = """
import sys
from pathlib import Path
from planning.test_expiry_killed import NOW, expire, home_at

expire(home_at(Path(sys.argv[1])), NOW)
"""


def home_at(folder: Path) -> LakeResource:
    return LakeResource(root=str(folder / "lake"), landing=str(folder / "landing"))


def expire(home: LakeResource, now: datetime) -> int:
    """Take out what has expired; return the number of its rows."""
    retention = Retention(events=home.events, zone=home.landing_zone, graph=LINEAGE, run=RUN)
    return sum(sum(rows.values()) for rows in retention.expire(now).rows_of.values())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a day."""
    home = deployment(tmp_path_factory.mktemp("whole") / "blog")
    for hour in HOURS:
        land(home, "visits", hour, {"visits.json": "a line\n" * 3})
    landed = {one.key: published_files.state_of(one) for one in home.landing_zone.scan("visits", Grain.HOUR)}
    counted = {"event_hours": [[hour, hour, None, "json", 3] for hour in HOURS], "reasons": []}
    measures = {hour: {"max_event_time": None, "dead": 0} for hour in HOURS}
    version = put(
        home.lake, "bronze.visits", ROWS["bronze.visits"], landed=landed, breakdowns=counted, measures=measures
    )
    put(home.lake, "silver.visits", ROWS["silver.visits"], inputs={"bronze.visits": version})
    put(home.lake, "gold.page_stats", ROWS["gold.page_stats"])
    assert [line.problem for name in ROWS for line in ledger.audit(home.lake, home.events, CONTRACTS[name])] == [
        None
    ] * (1 + 2 * len(HOURS))
    return home.landing_path.parent


def versions(name: str, more: int) -> Callable[[LakeResource], bool]:
    """Return whether a table has so many versions more than at first."""
    return lambda home: _commits(home, name) >= _first(name) + more


def landed(fewer: int) -> Callable[[LakeResource], bool]:
    """Return whether so many landed hours are gone."""
    return lambda home: len(list((home.landing_path / "visits").glob("date=*/hour=*"))) <= len(HOURS) - fewer


def _commits(home: LakeResource, name: str) -> int:
    return len(list((Path(home.lake.path(name)) / "_delta_log").glob("*.json")))


def _first(name: str) -> int:
    return len(ROWS) if name == EVENTS else 1


MOMENTS: Mapping[str, Callable[[LakeResource], bool]] = {
    "the first commit": versions("silver.visits", 1),
    "its event": versions(EVENTS, 1),
    "the second commit": versions("bronze.visits", 1),
    "the event of the second": versions(EVENTS, 2),
    **{f"{fewer} landed hours": landed(fewer) for fewer in (1, 2, 4, 6, 8, 10)},
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_moment_it_is_completed_by_the_next_one(whole: Path, tmp_path: Path, moment: str) -> None:
    home = home_at(shutil.copytree(whole, tmp_path / "blog"))
    command = [sys.executable, "-c", EXPIRING, str(home.landing_path.parent)]
    tests = str(Path(__file__).parents[1])
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": tests}) as process:
        while not MOMENTS[moment](home):
            assert process.poll() is None
            time.sleep(0.0005)
        process.kill()
    kept = {name: {key: count for key, count in rows.items() if key >= HOURS[13]} for name, rows in ROWS.items()}
    kept["gold.page_stats"] = dict(ROWS["gold.page_stats"])
    for name, rows in ROWS.items():
        assert home.lake.row_counts(name, CONTRACTS[name].partition_column) in (rows, kept[name])
    expire(home, NOW)
    for name, rows in ROWS.items():
        assert home.lake.row_counts(name, CONTRACTS[name].partition_column) == kept[name]
        lines = ledger.audit(home.lake, home.events, CONTRACTS[name])
        assert [line.problem for line in lines if line.problem] == []
        gone = sum(line.entry.reasons.get("expired", 0) for line in lines)
        assert gone == sum(rows.values()) - sum(kept[name].values())
    assert [one.key for one in home.landing_zone.scan("visits", Grain.HOUR)] == list(kept["bronze.visits"])
    assert expire(home, NOW) == 0
    assert expire(home, LATER) == sum(sum(rows.values()) for rows in kept.values())
