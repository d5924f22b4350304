"""The smallest plan: what has read a replayed partition, once, and nothing else; and nothing that has no source."""

from __future__ import annotations

import shutil
from collections.abc import Set
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

import published
from blogdata.contract.contract import Wanted
from blogdata.contract.partitions import Grain, between, coarser, ends_of
from blogdata.contract.publication import WHOLE_TABLE
from blogdata.errors import ConfigurationError
from blogdata.ledger.events import EventLog
from blogdata.ledger.executions import ReplayTooLong
from blogdata.planning.graph import LANDING
from blogdata.planning.plan import ASKED
from blogdata.planning.snapshot import awaited, landed_tables
from blogdata.runs.lake_resource import LakeResource
from blogdata.table.lake import Lake
from declared import OF_COMPLETE_WEEKS, by_grain, computed_from
from published import another_version, bronze, days, devices, enriched, planner, publish, stale, whole
from quality.contracts import CONTRACTS, GRAPH

AUDIENCE, RETURNING = "gold.audience_hourly", "gold.returning_visitors"
H = [f"2026-01-05T{hour:02d}" for hour in range(24)]


def planned(asked: Wanted, lake: Lake) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for run in planner(lake).plan_of_replay(asked).runs:
        for dataset in run.datasets:
            keys = found.setdefault(dataset, set())
            assert keys.isdisjoint(run.keys or (WHOLE_TABLE,)), "a partition is in one run only"
            keys.update(run.keys or (WHOLE_TABLE,))
    return found


def test_replaying_an_arrival_hour_reaches_its_event_hours(lake: Lake) -> None:
    bronze(lake, {"2026-01-11T00": {"2026-01-11T00": 5, "2026-01-09T22": 1}, "2026-01-11T01": {"2026-01-11T01": 3}})
    keys = {Grain.DAY: {"2026-01-09", "2026-01-11"}, Grain.WEEK: {"2026-01-05"}, None: {WHOLE_TABLE}}
    by_event = computed_from("silver.visits") | {"silver.visits"}
    # Requests are counted from access logs; these are events.
    by_arrival = computed_from("bronze.visits") - by_event - {"gold.requests_daily"} | {"bronze.visits"}
    assert by_arrival == {"bronze.visits", "bronze.dead_letters", "silver.late_visits"}
    assert planned({"bronze.visits": {"2026-01-11T00": ASKED}}, lake) == {
        **by_grain(by_event, {Grain.HOUR: {"2026-01-09T22", "2026-01-11T00"}, **keys}),
        **by_grain(by_arrival, {Grain.HOUR: {"2026-01-11T00"}}),
    }


def test_only_the_first_user_delivery_reaches_earlier_hours(lake: Lake) -> None:
    hours = ["2026-01-03T10", "2026-01-05T23", "2026-01-07T00"]
    days(lake, "2026-01-04", dead=1)
    read = whole(lake, "silver.users", inputs={"bronze.users": days(lake, "2026-01-05", "2026-01-06")})
    enriched(lake, hours, read=read)
    assert planned({"bronze.users": {"2026-01-05": ASKED}}, lake)["silver.visits_enriched"] == set(hours)
    assert planned({"bronze.users": {"2026-01-06": ASKED}}, lake)["silver.visits_enriched"] == {hours[2]}

    def stale_after(day: str) -> list[str]:
        whole(lake, "silver.users", inputs={"bronze.users": days(lake, day)})
        return stale(lake, "silver.visits_enriched")

    assert stale_after("2026-01-07") == hours[2:]
    assert stale_after("2026-01-05") == hours
    enriched(lake, hours, read=whole(lake, "silver.users", inputs={"bronze.users": days(lake, "2026-01-04", dead=1)}))
    assert stale(lake, "silver.visits_enriched") == []
    assert stale_after("2026-01-04") == hours


def test_compacting_users_makes_no_hour_stale(lake: Lake) -> None:
    hours = ["2026-01-05T23", "2026-01-06T00"]
    whole(lake, "silver.users", inputs={"bronze.users": days(lake, "2026-01-05")})
    enriched(lake, hours, read=another_version(lake, "silver.users"))
    assert stale(lake, "silver.visits_enriched") == []
    whole(lake, "silver.users", inputs={"bronze.users": days(lake, "2026-01-06")})
    assert stale(lake, "silver.visits_enriched") == hours[1:]


def merged(lake: Lake, *keys: str, read: int) -> None:
    for key in keys:
        publish(lake, "silver.users_current", None, {key: 1}, inputs={"bronze.users": read})


def test_replaying_a_delivery_reruns_all_later_executions(lake: Lake) -> None:
    deliveries = [f"2026-01-{day:02d}" for day in range(1, 10)]
    merged(lake, *deliveries, read=days(lake, *deliveries))
    (run,) = planner(lake).plan_of_replay({"silver.users_current": {"2026-01-07": ASKED}}).runs
    assert run.keys == ("2026-01-07", "2026-01-08", "2026-01-09")
    assert run.reasons == {ASKED: 1, "reads silver.users_current of 2026-01-07": 2}
    found = planned({"bronze.users": {"2026-01-08": ASKED}}, lake)
    assert found["silver.users_current"] == {"2026-01-08", "2026-01-09"}


def test_a_changed_delivery_replans_all_later_days(lake: Lake) -> None:
    deliveries = ("2026-01-05", "2026-01-06", "2026-01-07")
    merged(lake, *deliveries, read=days(lake, *deliveries))
    assert stale(lake, "silver.users_current") == []
    days(lake, "2026-01-06")
    assert stale(lake, "silver.users_current") == ["2026-01-06"]
    outstanding = {run.task.main: run.keys for run in planner(lake).outstanding().runs}
    assert outstanding["silver.users_current"] == ("2026-01-06", "2026-01-07")
    days(lake, "2026-01-09")
    assert "2026-01-09" in stale(lake, "silver.users_current")


def test_a_replay_over_the_limit_needs_named_days(lake: Lake) -> None:
    keys = between("2026-01-01", "2026-02-01", Grain.DAY)
    merged(lake, *keys, read=days(lake, *keys))
    assert CONTRACTS["silver.users_current"].replay_limit == 30
    assert len(planned({"silver.users_current": {"2026-01-02": ASKED}}, lake)["silver.users_current"]) == 31
    found = planner(lake).plan_of_replay({"silver.users_current": {"2026-01-01": ASKED}})
    (refused,) = found.refused
    assert isinstance(refused, ReplayTooLong)
    assert (found.runs, refused.what.startswith("31 later executions")) == ([], True)
    assert "partitions=2026-01-01..2026-02-01" in refused.next_step
    assert planned({"silver.users_current": dict.fromkeys(keys, ASKED)}, lake) == {"silver.users_current": set(keys)}


OF_DEVICES = ["2026-01-03T10", "2026-01-05T23", "2026-01-07T00"]


def listed(lake: Lake, day: str, **more: int) -> int:
    """Publish a delivery of the devices and the resulting versions; return the version of the latter."""
    return whole(lake, "silver.devices", inputs={"bronze.devices": devices(lake, day, **more)})


def test_a_newer_device_list_outdates_hours_since_it(lake: Lake) -> None:
    assert stale(lake, "silver.visits_enriched") == []
    enriched(lake, OF_DEVICES, read=0)
    read = listed(lake, "2026-01-05")
    assert stale(lake, "silver.visits_enriched") == OF_DEVICES, "the first list is valid from the beginning"
    enriched(lake, OF_DEVICES, read=read, of="silver.devices")
    assert stale(lake, "silver.visits_enriched") == []
    read = listed(lake, "2026-01-06")
    assert stale(lake, "silver.visits_enriched") == OF_DEVICES[2:]
    enriched(lake, OF_DEVICES[2:], read=read, of="silver.devices")
    assert stale(lake, "silver.visits_enriched") == []
    # The newest list was removed: the one before it is the newest again.
    listed(lake, "2026-01-05")
    assert stale(lake, "silver.visits_enriched") == OF_DEVICES
    enriched(lake, OF_DEVICES, read=listed(lake, "2026-01-05"), of="silver.devices")
    assert stale(lake, "silver.visits_enriched") == []


def test_replaying_devices_reaches_hours_since_their_list(lake: Lake) -> None:
    listed(lake, "2026-01-04", dead=1)
    listed(lake, "2026-01-05")
    enriched(lake, OF_DEVICES, read=listed(lake, "2026-01-06"), of="silver.devices")

    def reached(dataset: str) -> set[str]:
        return planned({dataset: {WHOLE_TABLE: ASKED}}, lake).get("silver.visits_enriched", set())

    assert reached("bronze.devices") == {OF_DEVICES[2]}
    assert reached("silver.devices") == set(OF_DEVICES)
    land(lake, "2026-01-08")
    assert reached("bronze.devices") == set(), "a newer one has landed"
    shutil.rmtree(Path(lake.root).parent / "landing")
    land(lake, "2026-01-05")
    assert reached("bronze.devices") == set(OF_DEVICES), "it is the first list again"


def land(lake: Lake, day: str) -> None:
    folder = Path(lake.root).parent / "landing" / "devices" / f"date={day}"
    folder.mkdir(parents=True)
    (folder / "_SUCCESS").touch()


def test_final_days_run_only_when_named(lake: Lake) -> None:
    bronze(lake, {"2026-01-20T00": {"2026-01-20T00": 1, "2026-01-07T03": 1, "2026-01-05T03": 1}})
    settle(lake, {"silver.visits", "silver.visits_enriched", "gold.page_stats", "gold.referral_stats"})
    publish(lake, "silver.visits_enriched", "event_hour", {"2026-01-05T03": 2, "2026-01-07T03": 2})
    late = {"2026-01-05", "2026-01-07"}
    assert (set(stale(lake, "gold.page_stats")), stale(lake, "gold.referral_stats")) == (late, ["2026-01-07"])
    replayed = planned({"silver.visits": dict.fromkeys(["2026-01-05T03", "2026-01-07T03"], ASKED)}, lake)
    assert (replayed["gold.page_stats"], replayed["gold.referral_stats"]) == (late, {"2026-01-07"})
    assert planned({"gold.referral_stats": {"2026-01-05": ASKED}}, lake) == {"gold.referral_stats": {"2026-01-05"}}


hours = st.sampled_from([*H[:6], "2026-01-06T00", "2026-01-12T03"])


# Each example publishes every dataset twice.
@pytest.mark.campaign
@hypothesis(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    arrivals=st.dictionaries(hours, st.dictionaries(hours, st.integers(1, 9), max_size=3), min_size=1, max_size=4),
    data=st.data(),
)
def test_a_replay_plan_equals_the_staleness_it_causes(
    tmp_path_factory: pytest.TempPathFactory, arrivals: dict[str, dict[str, int]], data: st.DataObject
) -> None:
    lake = Lake(root=str(tmp_path_factory.mktemp("lake")))
    bronze(lake, arrivals)
    settle(lake)
    assert planner(lake).outstanding().runs == []
    asked = data.draw(st.sets(st.sampled_from(sorted(arrivals)), min_size=1))
    expected = planned({"bronze.visits": dict.fromkeys(asked, ASKED)}, lake)
    bronze(lake, {hour: arrivals[hour] for hour in asked})
    # An hour that ran again has its late rows captured with it.
    found = {"bronze.visits": set(asked), **settle(lake)}
    assert found == expected


def settle(lake: Lake, datasets: Set[str] = CONTRACTS.keys()) -> dict[str, set[str]]:
    """Publish all stale partitions of datasets, task by task as `blogdata run` does; return them."""
    done: dict[str, set[str]] = {}
    events = EventLog(lake)
    for task in (task for task in GRAPH.tasks if task.main in datasets):
        keys = planner(lake).stale(task)
        for contract in task.contracts if keys else ():
            dataset = contract.dataset
            done.setdefault(dataset, set()).update(keys)
            inputs = lake.versions(edge.above for edge, _ in GRAPH.edges(task) if edge.below is contract)
            rows = arrived(events) if dataset in ("silver.visits", AUDIENCE) else {}
            marks = dict.fromkeys(keys, "no watermark") if dataset == "silver.late_visits" else None
            published = {key: rows.get(key, 0) for key in keys}
            own = {WHOLE_TABLE: {"newest_week": newest_week(events)}} if dataset == RETURNING else {}
            column = contract.partition_column
            publish(lake, dataset, column, published, inputs=inputs, landed=marks, measures=own)
    return done


def newest_week(events: EventLog) -> str:
    weeks = {coarser(hour, Grain.HOUR, Grain.WEEK) for hour, rows in arrived(events).items() if rows}
    return sorted(weeks)[-2]


def arrived(events: EventLog) -> dict[str, int]:
    rows: dict[str, int] = {}
    for entry in events.publications("bronze.visits").values():
        for (hour, *_), count in entry.breakdowns["event_hours"].items():
            rows[str(hour)] = rows.get(str(hour), 0) + count
    return rows


def test_partitions_are_named_by_keys_ranges_and_longer_periods() -> None:
    assert ends_of(" 2026-01-05T03..2026-01-05T05", Grain.HOUR) == ("2026-01-05T03", "2026-01-05T05")
    assert ends_of("2026-01-05", Grain.HOUR) == (H[0], H[-1])
    assert ends_of("2026-01-07..2026-01-13", Grain.WEEK) == ("2026-01-05", "2026-01-12")
    assert ends_of("9999-12-20..9999-12-31", Grain.WEEK) == ("9999-12-20", "9999-12-27")


@pytest.mark.parametrize("text", ["yesterday", "2026-01-05T", "2026-13-01", "", "2026-01-05..", "..2026-01-05T01"])
def test_invalid_partitions_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        ends_of(text, Grain.HOUR)


def test_an_open_range_has_the_hours_that_are_there(lake: Lake) -> None:
    bronze(lake, {H[1]: {H[1]: 1}, H[3]: {H[3]: 1}})
    assert planner(lake).resolve_keys("bronze.visits", f"2026-01-05, {H[3]}") == [H[1], H[3]]
    assert planner(lake).resolve_keys("bronze.visits", "2026-01-05T02..9999-12-31") == [H[3]]
    with pytest.raises(ConfigurationError, match=r"has no partition 2026-01-06T00\.\.9999-12-31T23"):
        planner(lake).resolve_keys("bronze.visits", "2026-01-06..9999-12-31")


HOUR, DAY = "2026-01-05T00", "2026-01-05"
KEYS = {"visits": HOUR, "ads": HOUR, "users": DAY, "devices": DAY}


@pytest.fixture
def home(tmp_path: Path) -> LakeResource:
    return published.deployment(tmp_path)


def land_tables(home: LakeResource, *tables: str) -> None:
    for table in tables:
        published.land(home, table, KEYS[table], {"a.json": "{}"})


@hypothesis(deadline=None)
@given(st.sets(st.sampled_from(sorted(KEYS))))
def test_waiting_datasets_name_their_missing_inputs(landed: set[str]) -> None:
    there = {LANDING + table for table in landed}
    computed = GRAPH.with_input(there)
    for name in CONTRACTS:
        above = {name, *GRAPH.upstream([name])}
        missing = {edge.above for of in above for edge, _ in GRAPH.edges(GRAPH.task_of(of))} - there - CONTRACTS.keys()
        assert missing or name in computed
        assert name in GRAPH.with_input(there | missing)


def test_a_replay_plans_nothing_that_has_no_source(home: LakeResource) -> None:
    land_tables(home, "visits")
    published.bronze(home.lake, {HOUR: {HOUR: 1}})
    plan = published.planner(home.lake).plan_of_replay({"bronze.visits": {HOUR: ASKED}})
    # An unpublished hour has no access log lines yet whose requests a day could count, and no week has ended.
    planned = GRAPH.with_input([f"{LANDING}visits"]) - {"gold.requests_daily"} - OF_COMPLETE_WEEKS
    assert {name for run in plan.runs for name in run.datasets} == planned


def test_a_person_is_told_what_has_not_landed(home: LakeResource) -> None:
    land_tables(home, "visits")
    look = published.planner(home.lake).look
    assert landed_tables(GRAPH, look) == {f"{LANDING}visits"}
    assert awaited(GRAPH, look, "silver.visits_enriched") is None
    fault = awaited(GRAPH, look, "gold.campaign_stats")
    assert fault is not None
    assert fault.what == "nothing can be computed of gold.campaign_stats yet: nothing has landed of landing.ads"
    # Published hours count, even if their landed files are gone.
    published.publish(home.lake, "bronze.ads", "arrival_hour", {HOUR: 1})
    assert awaited(GRAPH, published.planner(home.lake).look, "gold.campaign_stats") is None
