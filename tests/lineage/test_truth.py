"""Every landed line is found exactly once, where the simulator and an independent count expect it.

Patterns: Wrapper, Static Joiner, Distributed Aggregator, Local Aggregator, Aligned Fan-In.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import plans
from blogdata.cli.output import Outcome
from blogdata.landing.readiness_marker import ENDED
from blogdata.operate import spark_attached
from blogdata.operate.config import Settings
from blogdata.planning import snapshot
from blogdata.planning.snapshot import Snapshot
from blogdata.simulator.spec import LINE_FAULTS, FaultRates, SimulationSpec
from blogdata.simulator.truth import Truth
from blogdata.watch import detectors
from blogdata.watch.findings import standing
from blogdata.watch.reading import FLOW
from declared import DAILY, WEEKLY, computed_from
from lineage import brute_force, costs, expected
from lineage.brute_force import Lines
from lineage.command_line import Said
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from quality.contracts import GRAPH
from quality.contracts.audience import LG_K

# Huge lines have five megabytes each, so there is one; every other fault has a rate of five per cent.
RATES = {**dict.fromkeys(LINE_FAULTS, 0.05), "huge_line": 0.0008, "empty_hour": 0.05, "missing_hour": 0.05}
SPEC = SimulationSpec(days=1, visits_per_day=1500, seed=19, faults=FaultRates(**RATES))
DAY = "2026-01-05"
MISSING, EMPTY = f"{DAY}T09", f"{DAY}T11"


@dataclass(frozen=True)
class World:
    """A simulated day after its runs, with all independent counts."""

    deployment: Deployment
    truth: Truth
    lines: Lines
    outcomes: Sequence[Outcome]
    costs: dict[str, Counter[str]]

    @classmethod
    def of(cls, deployment: Deployment, jobs: Path) -> World:
        """Simulate the day, read its lines, and run it: all but the last hour, then that hour with its late rows."""
        truth = deployment.simulate(SPEC)
        lines = brute_force.read(deployment.landing)
        outcomes, found = list[Outcome](), dict[str, Counter[str]]()
        hours = {path: path.with_name(f".{path.name}") for path in deployment.landing.glob(f"*/date={DAY}/hour=23")}
        for path, hidden in hours.items():
            path.rename(hidden)
        for run in ("a day", "an hour"):
            with costs.counting(deployment, jobs) as found[run]:
                outcomes.append(deployment.run())
            for path, hidden in hours.items():
                if hidden.exists():
                    hidden.rename(path)
        return cls(deployment=deployment, truth=truth, lines=lines, outcomes=outcomes, costs=found)


@pytest.fixture(scope="module")
def world(deploy: Deploy, settings: Settings) -> Iterator[World]:
    deployment = deploy("truth").as_in_production()
    yield World.of(deployment, plans.jobs_folder(settings.home))
    spark_attached.drop(deployment.settings)


def test_faulty_day_runs_without_problems_and_ledger_balances(world: World) -> None:
    assert [outcome.problems for outcome in world.outcomes] == [[], []]
    assert world.deployment.problems() == []


def test_a_day_and_an_hour_cost_no_more_than_is_recorded(world: World, tmp_path: Path) -> None:
    """Times vary, and follow from these counts."""
    assert all(run["rows_read"] for run in world.costs.values()), "without jobs in the log, no cost would be higher"
    assert costs.raised(world.costs, now=tmp_path / "costs.json") == []


def test_the_simulated_day_has_every_fault(world: World) -> None:
    assert {reason.partition(":")[0] for hour in world.truth.hours for reason in hour.reasons} == {
        "empty_line", "not_utf8", "too_large", "truncated", "not_json", "missing_field",
        "wrong_type", "invalid_time", "impossible_time",
    }  # fmt: skip
    states = {hour.state: hour.arrival_hour for hour in world.truth.hours if hour.state != "landed"}
    assert states == {"missing": MISSING, "empty": EMPTY}


def test_ledger_figures_match_the_truth(world: World) -> None:
    published = world.deployment.published("bronze.visits")
    letters = world.deployment.published("bronze.dead_letters")
    visits = world.deployment.published("silver.visits")
    for hour in world.truth.hours:
        if hour.state == "missing":
            assert hour.arrival_hour not in published
            continue
        entry = published[hour.arrival_hour]
        assert (entry.rows_in, entry.rows_out, entry.measures["bytes"] or 0) == (hour.lines, hour.lines, hour.bytes)
        assert (letters[hour.arrival_hour].rows_out, letters[hour.arrival_hour].reasons["usable"]) == (
            hour.dead, hour.valid,
        )  # fmt: skip
        assert {reason[0]: rows for reason, rows in entry.breakdowns["reasons"].items()} == hour.reasons
    for events in world.truth.event_hours:
        entry = visits[events.event_hour]
        assert (entry.rows_in, entry.rows_out, entry.reasons["duplicates"]) == (
            events.valid, events.unique, events.duplicates,
        )  # fmt: skip
    assert (published[EMPTY].rows_in, published[EMPTY].rows_out) == (0, 0)
    assert visits[MISSING].rows_out > 0, "its events arrived in another hour"


def test_visitors_of_any_hours_are_near_their_number(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BLOGDATA_HOME", str(world.deployment.settings.home))
    said, error = Said(monkeypatch, capsys), 1.04 / 2 ** (LG_K / 2)

    def asked(of: str, dimension: str, first: str, end: str, also: str = "true") -> dict[Any, tuple[int, int]]:
        query = (
            f"SELECT {of} AS of, sum(events) AS page_views, hll_sketch_estimate(hll_union_agg(visitors)) AS visitors "
            f"FROM gold.audience_hourly WHERE dimension = '{dimension}' AND {also} "
            f"AND event_hour >= '{first}' AND event_hour < '{end}' GROUP BY 1"
        )
        code, out, err = said("sql", query, "--json")
        assert (code, err) == (0, "")
        return {line["of"]: (line["page_views"], line["visitors"]) for line in json.loads(out)}

    def exact(by: Any, first: str, end: str) -> dict[Any, tuple[int, int]]:
        def within(time: datetime) -> bool:
            return first <= f"{time:%Y-%m-%dT%H}" < end

        groups = brute_force.groups(world.lines, lambda time, event: (within(time), by(time, event)))
        return {key: (counts[0], counts[2]) for (inside, key), counts in groups.items() if inside}

    day, hours = ("2026-01-05T00", "2026-01-06T00"), ("2026-01-05T07", "2026-01-05T12")
    for of, dimension, by, span in (
        ("'all'", "all", lambda time, event: "all", hours),
        ("event_hour", "all", lambda time, event: f"{time:%Y-%m-%dT%H}", day),
        ("value", "page", lambda time, event: event["page"], day),
        ("value", "country", lambda time, event: expected.place(event)[0] or "unknown", hours),
    ):
        counted, estimated = exact(by, *span), asked(of, dimension, *span)
        assert {key: views for key, (views, _) in estimated.items()} == {
            key: views for key, (views, _) in counted.items()
        }
        for key, (_, visitors) in counted.items():
            # At most four standard errors, and one visitor of rounding.
            assert abs(estimated[key][1] - visitors) <= 4 * error * visitors + 0.5

    pages = sorted({json.loads(line.raw)["page"] for line in world.lines.winners.values()})[:2]
    together = exact(lambda time, event: event["page"] in pages, *day)[True]
    (both,) = asked("'both'", "page", *day, f"value IN ('{pages[0]}', '{pages[1]}')").values()
    assert both[0] == together[0]
    assert both[1] == pytest.approx(together[1], rel=0.05)


def test_gold_counts_a_missing_hour_as_absent(world: World) -> None:
    """Its visits arrived with the next hour; an empty hour, in contrast, has landed."""
    landed = brute_force.delivered(world.deployment.landing)
    assert (len(landed), EMPTY in landed, MISSING in landed) == (23, True, False)
    assert world.deployment.rows("gold.campaign_stats", "hours_present") == [], "no ads have come"
    assert world.deployment.rows("gold.requests_daily", "hours_present") == [], "no access log has come"
    for dataset in sorted({*DAILY, *WEEKLY} & computed_from("bronze.visits") - {"gold.requests_daily"}):
        present = set(world.deployment.rows(dataset, "hours_present"))
        # Of a week each row has those of the moment at which it was added.
        assert max(present) == 23 if dataset == "gold.visits_weekly" else present == {23}, dataset


def test_weekly_visits_are_complete_and_hide_private_users(world: World) -> None:
    columns = ("event_time", "page", "keep_private", "user_id", "visit_id")
    enriched = world.deployment.rows("silver.visits_enriched", *columns)
    weekly = world.deployment.rows("gold.visits_weekly", *columns)
    expected = [(*row[:3], None if row[2] else row[3]) for row in enriched]
    assert sorted([row[:4] for row in weekly], key=repr) == sorted(expected, key=repr)
    assert {row[2] for row in enriched} == {True, False}
    # Visits are counted by their tokens, and a private page view leads to no other row of its visit.
    visits = {(visit, private) for _, _, private, _, visit in enriched}
    assert len({visit for *_, visit in weekly}) == len(visits) > len({visit for visit, _ in visits})
    assert not {visit for *_, visit in weekly} & {visit for visit, _ in visits}
    tokens = {private: {row[4] for row in weekly if row[2] is private} for private in (True, False)}
    assert not tokens[True] & tokens[False]


def test_every_dataset_equals_a_recount_in_plain_python(world: World) -> None:
    published = [name for name in expected.RULES if world.deployment.published(name)]
    assert len(published) == 20, "all but those of the ads, which have not come"
    for dataset, rows in expected.of(world.deployment.landing, *published).items():
        assert expected.found(world.deployment, dataset) == rows, dataset


def test_a_second_run_publishes_no_version(world: World) -> None:
    before = world.deployment.versions()
    again = world.deployment.run()
    assert (again.runs, again.problems) == (0, [])
    assert world.deployment.versions() == before


@pytest.mark.campaign
def test_an_empty_flag_makes_a_day_complete(world: World) -> None:
    pages = world.deployment.rows("gold.page_stats", "event_date", "page", "events")
    world.deployment.land(MISSING, [], name=".nothing")
    assert world.deployment.run().problems == []
    for dataset in {*DAILY} & computed_from("bronze.visits") - {"gold.requests_daily"}:
        assert set(world.deployment.rows(dataset, "hours_present")) == {24}, dataset
    assert sorted(world.deployment.rows("gold.page_stats", "event_date", "page", "events")) == sorted(pages)


@pytest.mark.campaign
def test_rerunning_the_day_gives_the_same_rows(world: World) -> None:
    before, versions = world.deployment.contents(), world.deployment.versions()
    again = world.deployment.run(hours=("2026-01-05", "2026-01-05"))
    assert again.problems == []
    after = world.deployment.versions()
    assert all(after[name] > version for name, version in versions.items())
    assert world.deployment.contents() == before
    assert world.deployment.problems() == []


def test_detectors_read_what_was_published(world: World) -> None:
    deployment = world.deployment
    published = deployment.published("silver.visits")
    assert all(sum(entry.breakdowns["visitors"].values()) == entry.rows_out for entry in published.values())
    newest = max(deployment.rows("silver.visits", "event_time")).astimezone(timezone.utc)
    soon = newest + timedelta(hours=1)
    note = deployment.landing / ENDED
    end = note.read_text()
    note.unlink()
    readings = {(reading.detector, reading.dataset): reading for reading in detectors.readings(seen(deployment, soon))}
    # From the file statistics that Spark wrote, which truncate below milliseconds.
    assert abs(readings[FLOW, "silver.visits"].value - 3600) < 0.01
    assert {key: reading.what for key, reading in readings.items() if reading.stands} == {}
    note.write_text(end)
    # The simulated days are long over, as the simulator has recorded: nothing is missed, and nothing else is wrong.
    later = standing(seen(deployment, datetime.now(timezone.utc)))
    assert [finding.identity for finding in later if finding.source in detectors.READERS] == []


def seen(deployment: Deployment, now: datetime) -> snapshot.Observed:
    return snapshot.Observed(graph=GRAPH, look=Snapshot(deployment.landing, deployment.events), now=now)
