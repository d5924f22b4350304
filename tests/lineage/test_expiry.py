"""A day that expires hour by hour, and three hours that stay: tables, ledger, plans and backfills."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import datetime, timezone

import pytest

from blogdata.lake import companions
from blogdata.orchestration.expiry import Retention
from blogdata.planning.expiry import PartitionExpired
from blogdata.publish.run import RunContext
from blogdata.simulator.spec import SimulationSpec
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from quality.contracts import CONTRACTS, GRAPH
from resources.zone import zone_of
from simulated import EVERY_FAULT

pytestmark = pytest.mark.campaign
DAYS = SimulationSpec(days=1, added_hours=3, visits_per_day=200, seed=31, faults=EVERY_FAULT, ads=True)
NOON = datetime(2028, 1, 5, 12, tzinfo=timezone.utc)
"""Two years after the first day's noon: its hours until then are older than the contracts keep them."""
NIGHT = datetime(2028, 1, 6, tzinfo=timezone.utc)
"""The whole first day is older."""
SECOND_DAY = "2026-01-06"
DAILY = ("gold.page_stats", "gold.visits_cube_daily")
FIRST, LAST, KEPT = "2026-01-05T00", "2026-01-05T11", "2026-01-05T13"


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    made = deploy("expiring")
    made.simulate(DAYS)
    assert made.run().problems == []
    return made


def expired(deployment: Deployment, now: datetime) -> Counter[str]:
    """Expire what is over; return the rows that left, by dataset."""
    run = RunContext(run_id="expires", job="", code_version="test")
    retention = Retention(events=deployment.events, zone=zone_of(deployment.settings), graph=GRAPH, run=run)
    return Counter({name: sum(rows.values()) for name, rows in retention.expire(now).rows_of.items()})


def by_hour(deployment: Deployment, dataset: str) -> Counter[str]:
    column = CONTRACTS[dataset].partition_column
    return Counter(deployment.lake.row_counts(dataset, column))


def test_half_a_day_expires(deployment: Deployment) -> None:
    hourly = [name for name, one in CONTRACTS.items() if one.grain is not None and one.grain.value == "hour"]
    before = {name: by_hour(deployment, name) for name in hourly}
    planned = deployment.outstanding().wanted()
    left = expired(deployment, NOON)
    for name in hourly:
        gone = {hour: rows for hour, rows in before[name].items() if hour <= LAST}
        assert by_hour(deployment, name) == before[name] - Counter(gone), name
        if CONTRACTS[name].appears_with is None:
            assert left[name] == sum(gone.values()), name
        else:
            table = deployment.lake.caught_up(name)
            assert table is not None
            assert companions.main_of(table) == CONTRACTS[name].appears_with
        entries = deployment.published(name)
        assert {key for key, entry in entries.items() if entry.expired is not None} == {
            key for key in entries if key <= LAST
        }
    assert left["silver.visits"] > 0
    assert not {name for name in left if name.startswith("gold.") and CONTRACTS[name].grain.value != "hour"}  # type: ignore[union-attr]
    assert deployment.problems() == []
    assert deployment.outstanding().wanted() == planned
    assert expired(deployment, NOON) == Counter()
    assert deployment.run().runs == 0


def test_what_expired_is_refused_and_what_is_kept_runs_again(deployment: Deployment) -> None:
    contents = deployment.contents()
    with pytest.raises(PartitionExpired, match="begin later: blogdata run --from 2026-01-05T"):
        deployment.run(hours=(FIRST, KEPT))
    with pytest.raises(PartitionExpired, match=f"{LAST} has expired"):
        deployment.run(hours=(LAST, LAST), select=["bronze.visits"])
    assert deployment.run(hours=(KEPT, KEPT), select=["bronze.visits", "silver.visits"]).problems == []
    asked = deployment.run_requested(again={"silver.visits": [FIRST, KEPT]}, only_again=True)
    assert len(asked.problems) == 1
    assert f"{FIRST} has expired" in asked.problems[0]
    assert deployment.run(select=["gold.page_stats"]).problems == []
    assert deployment.contents() == contents
    assert deployment.problems() == []


def test_a_late_row_of_an_expired_hour_is_kept_where_it_arrived(deployment: Deployment) -> None:
    silver = by_hour(deployment, "silver.visits")
    late = len(deployment.rows("silver.late_visits", "visit_id"))
    deployment.land("2026-01-06T03", [event("00:30", "/late")], name="late.json")
    assert deployment.run().problems == []
    assert by_hour(deployment, "silver.visits")[FIRST] == silver[FIRST] == 0
    assert len(deployment.rows("silver.late_visits", "visit_id")) == late + 1
    assert deployment.problems() == []
    assert deployment.run().runs == 0


def test_the_whole_day_expires_with_its_gold(deployment: Deployment) -> None:
    left = expired(deployment, NIGHT)
    assert left["gold.page_stats"] > 0
    daily = [name for name, one in CONTRACTS.items() if one.grain is not None and one.grain.value == "day"]
    for name in daily:
        if CONTRACTS[name].partitioning and name != "bronze.users":
            assert set(by_hour(deployment, name)) <= {"2026-01-06"}, name
    assert deployment.problems() == []
    assert deployment.run().runs == 0


def test_what_is_kept_equals_a_fresh_build_of_the_landed_files_that_are_left(
    deployment: Deployment, deploy: Deploy
) -> None:
    # Run by itself, the test is the first one to expire something.
    expired(deployment, NIGHT)
    assert not (deployment.landing / "visits" / "date=2026-01-05").exists()
    fresh = deploy("fresh")
    shutil.copytree(deployment.landing, fresh.landing, dirs_exist_ok=True)
    assert fresh.run().problems == []
    for name in ("bronze.visits", "silver.visits", "silver.visit_conflicts", "silver.visits_enriched", *DAILY):
        column = CONTRACTS[name].partition_column
        assert column is not None
        columns = [column, *[one.name for one in CONTRACTS[name].columns if one.name != column]]
        kept, built = ([row for row in one.rows(name, *columns) if row[0] >= SECOND_DAY] for one in (deployment, fresh))
        assert Counter(map(repr, kept)) == Counter(map(repr, built)), name
