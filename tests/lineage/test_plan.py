"""The plan of `blogdata run`: exactly the changed partitions, in whatever order files arrive."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

import dagster as dg
import pytest

import oracle
from blogdata.lake.commit import WHOLE_TABLE, Entry
from blogdata.publish.partitions import Grain
from declared import by_grain, computed_from
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.origins import THREE_HOURS, three_hours
from lineage.runs import evaluations, last_run
from quality.contracts import CONTRACTS

HOURS = ("2026-01-05T10", "2026-01-05T11", "2026-01-05T12")
HOURLY = (
    "bronze.visits", "bronze.dead_letters", "silver.late_visits", "silver.visits", "silver.visit_conflicts",
    "silver.visits_enriched", "gold.audience_hourly",
)  # fmt: skip
# Hour of arrival to its events, as (time, page). In 11 and 12 there are events behind the watermarks 10:40 and 11:40.
ARRIVALS = {
    "2026-01-05T10": [("10:05", "/a"), ("10:20", "/b"), ("10:55", "/c"), ("10:55", "/c")],
    "2026-01-05T11": [("11:10", "/a"), ("10:30", "/late"), ("11:55", "/b")],
    "2026-01-05T12": [("12:01", "/a"), ("10:45", "/later"), ("11:50", "/b"), ("11:55", "/b")],
}
BROKEN = (b"", b"{........", b'{"visit_id": "v"', b"\xff\xfe", b"{}", b"[1]")


def land(deployment: Deployment, *hours: str) -> None:
    for hour in hours:
        deployment.land(hour, [*(event(*given) for given in ARRIVALS[hour]), BROKEN[1]])


def late_rows(deployment: Deployment) -> list[tuple[str, str]]:
    return sorted(
        (hour, json.loads(raw)["page"]) for hour, raw in deployment.rows("silver.late_visits", "arrival_hour", "raw")
    )


@pytest.fixture(scope="module")
def published(deploy: Deploy) -> Deployment:
    """Three simulated hours, in which some events are late, and events of users and devices that nobody delivered."""
    return deploy.published("published", three_hours)


@pytest.fixture(scope="module")
def whole(deploy: Deploy) -> Deployment:
    """All hours landed, in one run."""
    deployment = deploy("straight")
    land(deployment, *HOURS)
    assert deployment.run().problems == []
    return deployment


@pytest.mark.campaign
def test_events_behind_their_arrival_hours_watermark_are_late(published: Deployment) -> None:
    late = late_rows(published)
    assert [row for row in late if row[1] == "/late"] == [(THREE_HOURS[-1], "/late")] * 2
    counted = oracle.count(published.landing)
    assert Counter(hour for hour, _ in late) == Counter({hour: one.late for hour, one in counted.arrivals.items()})


@pytest.mark.campaign
def test_visits_without_users_or_devices_are_published_unknown(published: Deployment) -> None:
    rows = published.rows("silver.visits_enriched", "page", "user_known", "device_known")
    found = {page: known for page, *known in rows if page in ("/late", "/conflict")}
    assert found == {"/late": [False, False], "/conflict": [False, False]}


@pytest.mark.campaign
def test_hours_run_out_of_order_give_equal_tables(whole: Deployment, deploy: Deploy) -> None:
    shuffled = deploy("shuffled")
    for hour in (HOURS[2], HOURS[0], HOURS[1]):
        land(shuffled, hour)
        assert shuffled.run(hours=(hour, hour), select=HOURLY).problems == []
    # Each of these runs saw its own hour only; this one finds the work the others left.
    assert shuffled.run().problems == []
    assert late_rows(shuffled) == late_rows(whole)
    assert shuffled.contents() == whole.contents()
    assert shuffled.problems() == []
    assert shuffled.run().runs == 0


def touched(deployment: Deployment, before: Mapping[str, Mapping[str, Entry]]) -> dict[str, set[str]]:
    """Map each dataset to the partitions published since."""
    found = {
        dataset: {
            key for key, entry in deployment.published(dataset).items()
            if key not in entries or entries[key].version != entry.version
        }
        for dataset, entries in before.items()
    }  # fmt: skip
    return {dataset: keys for dataset, keys in found.items() if keys}


def run_again(*, arrived: str, happened: Iterable[str]) -> dict[str, set[str]]:
    """Map what an hour of arrival makes run again to its partitions.

    Args:
        arrived: The hour.
        happened: The hours of the events in it, all of one day.
    """
    by_event, day = computed_from("silver.visits") | {"silver.visits"}, {arrived[:10]}
    # There is no access log here, whose requests gold.requests_daily counts.
    by_arrival = computed_from("bronze.visits") - by_event - {"gold.requests_daily"} | {"bronze.visits"}
    return {
        **by_grain(by_arrival, {Grain.HOUR: {arrived}}),
        **by_grain(by_event, {Grain.HOUR: set(happened), Grain.DAY: day, Grain.WEEK: day, None: {WHOLE_TABLE}}),
    }


@pytest.mark.campaign
def test_a_replay_reruns_readers_and_changes_no_row(whole: Deployment) -> None:
    contents, before = whole.contents(), {dataset: whole.published(dataset) for dataset in CONTRACTS}
    assert whole.replay("bronze.visits", HOURS[2]).problems == []
    # In the hour of 12 there are events of 10, 11 and 12.
    assert touched(whole, before) == run_again(arrived=HOURS[2], happened=HOURS)
    assert whole.contents() == contents
    assert whole.problems() == []
    assert whole.run().runs == 0


@pytest.mark.campaign
def test_a_replay_leaves_its_inputs_alone(whole: Deployment) -> None:
    before = {dataset: whole.published(dataset) for dataset in CONTRACTS}
    outcome = whole.replay("silver.visits_enriched", HOURS[0])
    assert outcome.problems == []
    assert set(touched(whole, before)) == {"silver.visits_enriched"} | computed_from("silver.visits_enriched")
    assert outcome.runs == 1
    assert whole.run().runs == 0


@pytest.mark.campaign
def test_a_file_after_the_flag_reruns_touched_partitions(whole: Deployment) -> None:
    before = {dataset: whole.published(dataset) for dataset in whole.contents()}
    # It arrives in 11, with an event of 11 and one of 10; no watermark moves.
    whole.land(HOURS[1], [event("11:20", "/new"), event("10:10", "/very-late"), BROKEN[0]], name="visits-2.json")
    outcome = whole.run()
    assert outcome.problems == []
    assert touched(whole, before) == run_again(arrived=HOURS[1], happened=HOURS[:2])
    assert ("2026-01-05T11", "/very-late") in late_rows(whole)
    assert {"/new", "/very-late"} <= set(whole.rows("silver.visits", "page"))
    counted = oracle.count(whole.landing)
    assert {key: entry.rows_out for key, entry in whole.published("silver.visits").items()} == {
        key: events.unique for key, events in counted.event_hours.items()
    }
    assert whole.problems() == []
    assert whole.run().runs == 0


@pytest.mark.campaign
def test_a_moved_watermark_changes_lateness_in_later_hours(whole: Deployment) -> None:
    # 11:59 in the hour of 11 moves the watermark of 12 from 11:40 to 11:44: still no more rows are late; then an
    # event of 12:04 (a browser's clock runs ahead) moves it to 11:49, and one of 11:50 stays in time.
    whole.land(HOURS[1], [event("12:04", "/ahead"), event("11:20", "/new")], name="visits-3.json")
    whole.land(HOURS[2], [event("11:45", "/now-late")], name="visits-2.json")
    assert whole.run().problems == []
    counted = oracle.count(whole.landing)
    assert {key: entry.rows_out for key, entry in whole.published("silver.late_visits").items()} == {
        key: arrival.late for key, arrival in counted.arrivals.items()
    }
    assert ("2026-01-05T12", "/now-late") in late_rows(whole)
    whole.land(HOURS[1], [event("11:04", "/ahead"), event("11:20", "/new")], name="visits-3.json")
    assert whole.run().problems == []
    # The line that moved the watermark is corrected, so a row in an untouched hour is no longer late.
    assert ("2026-01-05T12", "/now-late") not in late_rows(whole)
    assert whole.problems() == []


@pytest.mark.campaign
def test_only_broken_lines_give_only_dead_letters(deploy: Deploy) -> None:
    bad = deploy("bad")
    for hour in HOURS[:2]:
        bad.land(hour, BROKEN)
    outcome = bad.run()
    assert outcome.problems == []
    counted = oracle.count(bad.landing)
    assert sorted(reason for reasons in bad.rows("bronze.dead_letters", "reasons") for reason in reasons) == sorted(
        counted.reasons().elements()
    )
    assert len(bad.rows("bronze.dead_letters", "raw")) == 2 * len(BROKEN)
    assert bad.rows("silver.visits", "page") == bad.rows("gold.page_stats", "page") == []
    assert bad.problems() == []
    assert bad.run().runs == 0


@pytest.mark.campaign
def test_too_many_dead_letters_block_visits_until_accepted(
    deploy: Deploy,
) -> None:
    broken = deploy("broken")
    broken.land(HOURS[0], [*(event(*given) for given in ARRIVALS[HOURS[0]]), *[b"{"] * 150])
    stopped = broken.run()
    assert not stopped.ok
    assert "bronze.dead_letters 2026-01-05T10: 150 of 154 rows (97.4%) are rejected, 75.0% is accepted" in " ".join(
        stopped.problems
    )
    assert len(broken.rows("bronze.dead_letters", "raw")) == 150
    assert broken.lake.caught_up("silver.visits") is None
    assert last_run(broken) == dg.DagsterRunStatus.FAILURE, "the run reports it as well"
    assert [check.passed for check in evaluations(broken, "silver.visits", "waiting")] == [False]
    # Other hours continue; these rows do not, in any later run, and each run reports it.
    broken.land(HOURS[2], [*(event(*given) for given in ARRIVALS[HOURS[2]]), b"{"])
    (told,) = broken.run().problems
    assert last_run(broken) == dg.DagsterRunStatus.SUCCESS, "and only once"
    assert told.startswith(f"silver.visits {HOURS[0]} waits for a person: 150 of 154 rows (97.4%) are rejected")
    assert "blogdata run --accept dead_letters" in told
    assert broken.pasted(told) == [(["not_json"], 150)], "without the dead letter of the other hour"
    assert set(broken.rows("silver.visits", "event_hour")) == {HOURS[1], HOURS[2]}
    refused = broken.replay("silver.visits", HOURS[0]).problems
    assert "--accept dead_letters" in " ".join(refused), "nor if a person requests the hour by name"
    # A person has checked and accepts them.
    assert broken.run(accept="dead_letters").problems == []
    assert set(broken.rows("silver.visits", "event_hour")) == set(HOURS)
    assert broken.run().runs == 0
    assert broken.problems() == []


def user(name: str) -> bytes:
    return json.dumps({"id": f"user-/{name}", "login": name, "email": "a@example.org", **CONNECTED}).encode()


CONNECTED = {
    f"{name}_datetime": "2020-05-05T00:00:00Z" for name in ("registered", "first_connection", "last_connection")
}


def deliver_users(deployment: Deployment, day: str, *lines: bytes) -> None:
    folder = deployment.landing / "users" / f"date={day}"
    folder.mkdir(parents=True)
    (folder / "users.json").write_bytes(b"".join(line + b"\n" for line in lines))
    (folder / "_SUCCESS").touch()


@pytest.mark.campaign
def test_users_delivered_after_their_visits_are_joined(deploy: Deploy) -> None:
    late = deploy("late-users")
    joined = ["bronze.users", "silver.users", "silver.visits_enriched"]
    land(late, HOURS[0])
    assert late.run(for_=["silver.visits_enriched"]).problems == []
    assert known_pages(late) == set()
    # Users of the first delivery are valid since their registration, whatever the delivery's day.
    deliver_users(late, "2026-01-07", user("a"))
    assert late.run(select=joined).problems == []
    assert known_pages(late) == {"/a"}
    # Others are valid since their delivery: no earlier hour has to run again, and if one does, its rows stay equal.
    deliver_users(late, "2026-01-08", user("a"), user("b"))
    due = {dataset for run in late.outstanding().runs for dataset in run.datasets}
    assert due >= {"bronze.users", "silver.users"}
    assert "silver.visits_enriched" not in due
    assert "silver.visits_enriched" in {step["dataset"] for step in late.run(select=joined).steps}
    assert known_pages(late) == {"/a"}
    deliver_users(late, "2026-01-05", user("a"), user("b"))
    assert late.run().problems == []
    assert known_pages(late) == {"/a", "/b"}
    assert late.run().runs == 0


def known_pages(deployment: Deployment) -> set[str]:
    rows = dict(deployment.rows("silver.visits_enriched", "page", "user_known"))
    assert set(rows) == {"/a", "/b", "/c"}
    return {page for page, known in rows.items() if known}


def test_an_hour_without_its_flag_is_left_alone(deploy: Deploy) -> None:
    waiting = deploy("waiting")
    land(waiting, HOURS[0])
    (waiting.folder(HOURS[0]) / "_SUCCESS").unlink()
    assert (waiting.run().runs, waiting.versions()) == (0, {})


@pytest.mark.campaign
def test_a_span_reruns_without_any_users_or_devices(whole: Deployment) -> None:
    before = whole.contents()
    outcome = whole.run(hours=(HOURS[0], HOURS[0]))
    assert outcome.problems == []
    # Companions are published by their main dataset's step.
    assert {step["dataset"] for step in outcome.steps} >= {*HOURLY, "gold.page_stats"} - {"silver.visit_conflicts"}
    assert whole.contents() == before


@pytest.mark.campaign
def test_a_span_in_which_nothing_landed_runs_nothing(published: Deployment) -> None:
    assert published.run(hours=("2027-01-04", "2027-01-04")).runs == 0


@pytest.mark.campaign
def test_referral_statistics_ignore_rows_two_weeks_late(deploy: Deploy) -> None:
    settled = deploy("settled")
    settled.land("2026-01-05T10", [event("10:05", "/a")])
    settled.land("2026-01-22T10", [event("10:05", "/b").replace(b"2026-01-05", b"2026-01-22")])
    assert settled.run().problems == []
    final = settled.published("gold.referral_stats")["2026-01-05"]
    settled.land("2026-01-22T11", [event("10:06", "/late"), event("10:07", "/later")])
    assert settled.run().problems == []
    assert settled.published("gold.page_stats")["2026-01-05"].rows_in == 3
    assert settled.published("gold.referral_stats")["2026-01-05"].version == final.version
    # The check runs when the next day is published; so far its own day has not changed.
    settled.land("2026-01-22T12", [event("12:05", "/c").replace(b"2026-01-05", b"2026-01-22")])
    assert settled.run().problems == []
    (found,) = evaluations(settled, "gold.referral_stats", "too_late")[:1]
    assert not found.passed
    assert found.severity == dg.AssetCheckSeverity.WARN
    assert found.description == "2 rows came after their partition was final"
    assert settled.run().runs == 0
    assert settled.problems() == []
