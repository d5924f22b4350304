"""What has left its table when its retention ended: the ledger, plans, and what is asked for by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from assets.stream_inputs import streamed_inputs
from assets.streams.live_visits import STREAM
from blogdata.contract.contract import Edge
from blogdata.contract.partitions import Grain
from blogdata.ledger import ledger
from blogdata.ledger.events import EventLog
from blogdata.patterns.error_management.checkpointer import open_checkpoint
from blogdata.planning.arrivals import Arrivals, warnings
from blogdata.planning.expired import PartitionExpired, expires, refusals
from blogdata.planning.graph import Graph
from blogdata.planning.plan import ASKED
from blogdata.planning.reach import Landed
from blogdata.planning.snapshot import Snapshot, StreamedInput
from blogdata.privacy import retention as operation
from blogdata.privacy.retention import Retention
from blogdata.runs import turns
from blogdata.runs.lake_resource import LakeResource
from blogdata.table import expiry as lake_expiry
from blogdata.table.lake import Lake
from blogdata.table.target import RunContext
from published import days, deployment, land, planner, publish, read_by_stream
from quality.contracts import CONTRACTS, GRAPH
from simulated import Killed

H = [f"2026-01-05T{hour:02d}" for hour in range(24)]
SILVER = CONTRACTS["silver.visits"]
RUN = RunContext(run_id="expires", job="", code_version="test")
DAY = datetime(2026, 1, 6, tzinfo=timezone.utc)
"""The hours of H have ended; with one day of retention, none is over."""


def graph(**kept: int) -> Graph:
    """Return the lineage with the days that each dataset is kept; its name has two underscores for the dot."""
    by_name = {name.replace("__", "."): number for name, number in kept.items()}
    if "silver.visits" in by_name:
        by_name["silver.visit_conflicts"] = by_name["silver.visits"]
    changed = {name: replace(CONTRACTS[name], retention_days=number) for name, number in by_name.items()}
    return Graph(contracts={**CONTRACTS, **changed})


ONE_DAY = graph(bronze__visits=1, silver__visits=1)


def hours(lake: Lake, dataset: str, column: str, rows: Mapping[str, int], **info: Any) -> int:
    """Publish partitions with as many rows as their accounts tell."""
    keys = [key for key, count in rows.items() for _ in range(count)]
    return publish(lake, dataset, column, rows, content=pa.table({column: keys, "row": range(len(keys))}), **info)


def arrive(lake: Lake, arrivals: Mapping[str, Mapping[str, int]], landed: Mapping[str, str] | None = None) -> int:
    counts = {arrival: sum(rows.values()) for arrival, rows in arrivals.items()}
    breakdown = [[key, hour, None, "json", count] for key, rows in arrivals.items() for hour, count in rows.items()]
    measures, breakdowns = {key: {"max_event_time": None, "dead": 0} for key in arrivals}, {"event_hours": breakdown}
    more: dict[str, Any] = {"breakdowns": {**breakdowns, "reasons": []}, "measures": measures, "landed": landed}
    return hours(lake, "bronze.visits", "arrival_hour", counts, **more)


@pytest.fixture
def published(lake: Lake) -> Lake:
    """Three hours of arrival; the second has a late row of the first."""
    version = arrive(lake, {H[0]: {H[0]: 3}, H[1]: {H[1]: 4, H[0]: 1}, H[2]: {H[2]: 5}})
    counts = {H[0]: 4, H[1]: 4, H[2]: 5}
    version = hours(lake, "silver.visits", "event_hour", counts, inputs={"bronze.visits": version})
    publish(lake, "silver.visit_conflicts", "event_hour", dict.fromkeys(counts, 0), inputs={"silver.visits": version})
    version = hours(lake, "silver.visits_enriched", "event_hour", counts, inputs={"silver.visits": version})
    for dataset in ("gold.page_stats", "gold.referral_stats"):
        hours(lake, dataset, "event_date", {"2026-01-05": 2}, inputs={"silver.visits_enriched": version})
    return lake


def retention(lake: Lake, lineage: Graph) -> Retention:
    return Retention(events=EventLog(lake), zone=planner(lake).look.zone, graph=lineage, run=RUN)


def expired(lake: Lake, hours_later: int, lineage: Graph = ONE_DAY) -> Mapping[str, Mapping[str, int]]:
    """Expire what is over some hours after the end of the day; return rows by dataset and partition."""
    return retention(lake, lineage).expire(DAY + timedelta(hours=hours_later))[0]


def balanced(lake: Lake, dataset: str) -> dict[str, tuple[int, dict[str, int]]]:
    """Return the rows of each line of the ledger and the reasons of those that are left out; all lines add up."""
    lines = ledger.audit(lake, EventLog(lake), CONTRACTS[dataset])
    assert [line.problem for line in lines] == [None] * len(lines)
    return {line.entry.partition: (line.entry.rows_out, dict(line.entry.reasons)) for line in lines}


def planned(lake: Lake, lineage: Graph = ONE_DAY) -> dict[str, list[str]]:
    return planner(lake, lineage).outstanding().wanted()


def test_partitions_leave_when_their_retention_is_over_counted_from_their_end(published: Lake) -> None:
    before, stale = published.versions(["bronze.visits", "silver.visits"]), planned(published)
    assert expired(published, 0) == {}
    over = {"silver.visits": {H[0]: 4}, "bronze.visits": {H[0]: 3}}
    assert retention(published, ONE_DAY).expire(DAY + timedelta(hours=1), only_plan=True)[0] == over
    assert published.versions(["bronze.visits", "silver.visits"]) == before, "a dry run only tells"
    assert expired(published, 1) == over
    assert balanced(published, "silver.visits") == {H[0]: (0, {"expired": 4}), H[1]: (4, {}), H[2]: (5, {})}
    assert published.row_counts("silver.visits", "event_hour") == {H[1]: 4, H[2]: 5}
    assert published.row_counts("bronze.visits", "arrival_hour") == {H[1]: 5, H[2]: 5}
    assert expired(published, 1) == {}, "once only"
    assert expired(published, 3) == {"silver.visits": {H[1]: 4, H[2]: 5}, "bronze.visits": {H[1]: 5, H[2]: 5}}
    after = planned(published)
    assert {"silver.visits", "silver.visits_enriched", "gold.page_stats"}.isdisjoint(after), "nothing becomes stale"
    assert {name: keys for name, keys in stale.items() if name in after} == after


def test_an_hour_whose_table_keeps_longer_is_not_computed_from_what_is_left(published: Lake) -> None:
    """A late row of an hour comes whose arrivals have expired, but for the one with the late row."""
    lineage = graph(bronze__visits=1)
    assert expired(published, 1, lineage) == {"bronze.visits": {H[0]: 3}}
    arrive(published, {H[3]: {H[3]: 1, H[0]: 1, H[1]: 1}})
    assert planned(published, lineage)["silver.visits"] == [H[1], H[3]]
    refused = refusals(planner(published, lineage).look, lineage, lineage.task_of("silver.visits"), [H[0], H[1]])
    assert list(refused) == [H[0]]
    assert refused[H[0]].what == f"{H[0]} stays as it is: bronze.visits {H[0]}, which it is computed from, has expired"
    assert balanced(published, "silver.visits")[H[0]] == (4, {}), "it keeps its rows"


def test_a_late_row_of_an_expired_hour_makes_nothing_stale_and_stays_where_it_arrived(published: Lake) -> None:
    lineage = graph(silver__visits=1)
    assert expired(published, 1, lineage) == {"silver.visits": {H[0]: 4}}
    arrive(published, {H[3]: {H[3]: 1, H[0]: 1}})
    found = planned(published, lineage)
    assert found["silver.visits"] == [H[3]]
    assert [*planner(published, lineage).stale(lineage.task_of("silver.visits"))] == [H[3]]
    assert found["silver.late_visits"] == H[:4], "it is looked for among the late rows of its arrival"
    assert balanced(published, "bronze.visits")[H[3]] == (2, {})


def test_a_day_of_expired_hours_is_not_computed_again(published: Lake) -> None:
    dataset, lineage = "gold.page_stats", graph(silver__visits_enriched=1)
    assert expired(published, 1, lineage) == {"silver.visits_enriched": {H[0]: 4}}
    with pytest.raises(PartitionExpired, match="2026-01-05 stays as it is") as refused:
        planner(published, lineage).resolve_keys(dataset, "2026-01-05")
    assert f"blogdata ledger {dataset}" in str(refused.value)
    plan = planner(published, lineage).plan_of_replay({"silver.visits": {H[1]: ASKED}})
    assert [run.task.main for run in plan.runs if dataset in run.datasets] == []


def test_the_hour_after_an_expired_one_is_not_computed_without_what_was_pending(lake: Lake) -> None:
    lineage = graph(silver__sessions=1, silver__sessions_pending=1)
    hours(lake, "silver.sessions", "event_hour", {H[0]: 1, H[1]: 1, H[2]: 1})
    assert expired(lake, 1, lineage) == {"silver.sessions": {H[0]: 1}}
    found = refusals(planner(lake, lineage).look, lineage, lineage.task_of("silver.sessions"), H[:3])
    assert [*found] == H[:2]
    assert "which it is computed from, has expired" in found[H[1]].what


def test_what_is_asked_for_by_name_is_refused_with_the_reason_and_the_remedy(published: Lake) -> None:
    expired(published, 1)
    one = planner(published, ONE_DAY)
    with pytest.raises(PartitionExpired) as refused:
        one.resolve_keys("silver.visits", f"{H[0]},{H[1]}")
    assert f"{H[0]} has expired: its rows have left the table" in str(refused.value)
    assert one.resolve_keys("silver.visits", H[2]) == [H[2]]
    assert one.resolve_keys("silver.visits", f"{H[0]}..{H[2]}") == [H[2]], "the first that is kept reads an expired one"
    with pytest.raises(PartitionExpired, match="has expired"):
        one.resolve_keys("silver.visits", f"{H[0]}..{H[0]}")


def test_a_partition_that_a_run_computes_waits_for_the_next_time(published: Lake) -> None:
    claims, owner = turns.claims(published, "silver.visits"), turns.this_run()
    claims.take([H[0]], owner)
    assert expired(published, 2) == {"silver.visits": {H[1]: 4}, "bronze.visits": {H[0]: 3, H[1]: 5}}
    claims.release([H[0]], owner)
    assert expired(published, 2) == {"silver.visits": {H[0]: 4}}
    assert claims.held() == {}


def test_another_commit_in_between_keeps_its_rows(published: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    count = lake_expiry.rows_of

    def overtaken(*arguments: Any) -> Mapping[str, int]:
        monkeypatch.setattr(lake_expiry, "rows_of", count)
        found = count(*arguments)
        hours(published, "silver.visits_enriched", "event_hour", {H[0]: 9, H[5]: 7})
        return found

    monkeypatch.setattr(lake_expiry, "rows_of", overtaken)
    assert expired(published, 1, graph(silver__visits_enriched=1)) == {"silver.visits_enriched": {H[0]: 13}}
    assert published.row_counts("silver.visits_enriched", "event_hour") == {H[1]: 4, H[2]: 5, H[5]: 7}


def test_a_death_before_the_event_loses_nothing(published: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    leave = lake_expiry.leave

    def dies(*given: Any, **named: Any) -> None:
        leave(*given, **named)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(lake_expiry, "leave", dies)
        with pytest.raises(Killed):
            expired(published, 1)
    assert balanced(published, "silver.visits")[H[0]] == (0, {"expired": 4})
    assert balanced(published, "bronze.visits")[H[0]] == (3, {})
    assert expired(published, 1) == {"bronze.visits": {H[0]: 3}}, "the next call does the rest"


def test_deliveries_from_which_a_history_is_derived_as_a_whole_stay(lake: Lake) -> None:
    days(lake, "2026-01-01", "2026-01-02")
    assert expired(lake, 1, graph(bronze__users=1)) == {}
    kept = {name for name, contract in CONTRACTS.items() if contract.partitioning and not expires(contract, GRAPH)}
    companions = {name for name, contract in CONTRACTS.items() if contract.appears_with}
    assert kept - companions == {"bronze.users"}


@pytest.fixture
def home(tmp_path: Path) -> LakeResource:
    made = deployment(tmp_path / "blog")
    for key in H[:2]:
        land(made, "visits", key, {"visits.json": "a line"})
    states = {part.key: part.fingerprint for part in made.landing_zone.scan("visits", Grain.HOUR)}
    arrive(made.lake, {key: {key: 1} for key in H[:2]}, landed=states)
    return made


def kept(home: LakeResource, hours_later: int, streams: Sequence[StreamedInput] = ()) -> list[str]:
    """Expire what is over some hours after the end of the day; return the entries of the landed table that are left."""
    zone, lineage = home.landing_zone, graph(bronze__visits=1)
    now = DAY + timedelta(hours=hours_later)
    Retention(events=home.events, zone=zone, graph=lineage, run=RUN, streams=streams).expire(now)
    table = home.landing_path / "visits"
    return sorted(str(path.relative_to(table)) for path in table.rglob("*"))


FIRST, SECOND = "date=2026-01-05/hour=00", "date=2026-01-05/hour=01"
SECOND_ONLY = ["date=2026-01-05", SECOND, f"{SECOND}/_SUCCESS", f"{SECOND}/visits.json"]


def test_landed_files_go_with_the_rows_that_were_read_from_them(home: LakeResource) -> None:
    assert len(kept(home, 0)) == 7
    assert kept(home, 1) == SECOND_ONLY
    look = Snapshot(home.landing_zone, home.events)
    contract = graph(bronze__visits=1).contracts["bronze.visits"]
    assert Landed(table="visits", grain=Grain.HOUR).behind(look, Edge(above="landing.visits", below=contract)) == {}
    overdue = Arrivals.of(contract, home.landing_zone).overdue(home.events, DAY - timedelta(hours=22))
    assert overdue.warning is None
    assert kept(home, 2) == [], "the folder of the day goes with its last hour"


def test_files_that_landed_again_after_they_expired_stay_and_are_not_taken_in(home: LakeResource) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operation, "remove", lambda _: None)
        kept(home, 1)
    land(home, "visits", H[0], {"visits.json": "another line"})
    assert f"{FIRST}/visits.json" in kept(home, 1)
    lineage = graph(bronze__visits=1)
    one = planner(home.lake, lineage)
    contract = lineage.contracts["bronze.visits"]
    assert one.stale(lineage.task_of("bronze.visits")) == {}
    assert warnings([contract], Snapshot(home.landing_zone, home.events), DAY - timedelta(hours=22)) == [
        f"bronze.visits: files of {H[0]} came or changed after their rows had expired, and are not taken in; land "
        "them in an hour or day of now, or remove them"
    ]


def test_files_that_a_stream_has_not_read_yet_stay(home: LakeResource) -> None:
    streams = streamed_inputs(home.checkpoints_path)
    checkpoint = open_checkpoint(home.checkpoints_path, STREAM.spec(home.landing_path))
    read_by_stream(checkpoint, planned=0, committed=0)
    assert f"{FIRST}/visits.json" in kept(home, 1, streams)
    read_by_stream(checkpoint, home.landing_path / "visits" / FIRST / "visits.json", planned=1, committed=1)
    assert kept(home, 1, streams) == SECOND_ONLY


@pytest.mark.parametrize("dies", ["before the removal", "within it"])
def test_a_removal_that_was_cut_off_is_finished_by_the_next_one(
    home: LakeResource, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        if dies == "within it":
            patch.setattr("shutil.rmtree", killed)
        else:
            patch.setattr(operation, "remove", killed)
        with pytest.raises(Killed):
            kept(home, 1)
    assert home.lake.row_counts("bronze.visits", "arrival_hour") == {H[1]: 1}
    assert [part.key for part in home.landing_zone.scan("visits", Grain.HOUR)] == H[dies == "within it" : 2]
    assert home.landing_zone.astray("visits", Grain.HOUR) == []
    assert kept(home, 1) == SECOND_ONLY
