"""The data figures of the report: datasets, runs, measures and contracts."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import published
from blogdata.evidence.events import EventLog
from blogdata.evidence.published_commits import PublishedCommit, published_commits
from blogdata.lake.lake import Lake
from blogdata.patterns.observability.dataset_tracker import Lineage, LineageEdge, Node
from blogdata.report import contract_changes, lineage_picture, measure_trends, run_costs
from blogdata.report.dataset_state import Freshness, state_of
from quality.contracts import EVERY

NOW = datetime(2026, 1, 20, tzinfo=timezone.utc)
COMMIT = PublishedCommit(
    dataset="silver.visits",
    version=1,
    recorded_at=NOW,
    run_id="run-1",
    job="refresh",
    trigger="command:blogdata run",
    code_version="code",
    contract="a",
    partitions=2,
    first="2026-01-05T00",
    last="2026-01-05T01",
    rows_in=10,
    rows_out=8,
    seconds=4.0,
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path / "lake"))


@pytest.mark.parametrize(
    ("dataset", "hours", "state"),
    [
        # The hour itself plus the promised two hours.
        ("silver.visits", 3, Freshness.FRESH),
        ("silver.visits", 3.1, Freshness.LATE),
        # The day itself plus the promised six hours.
        ("gold.page_stats", 30, Freshness.FRESH),
        ("gold.page_stats", 30.1, Freshness.LATE),
        # A table without partitions: one day plus the promised day.
        ("silver.users", 48, Freshness.FRESH),
        ("silver.users", 48.1, Freshness.LATE),
        ("silver.late_visits", 9999, Freshness.UNPROMISED),
    ],
)
def test_a_dataset_is_late_after_its_promise(dataset: str, hours: float, state: Freshness) -> None:
    commit = replace(COMMIT, dataset=dataset, recorded_at=NOW - timedelta(hours=hours))
    assert state_of(EVERY[dataset], [], [commit], NOW).freshness is state


def test_unpublished_datasets_are_not_late() -> None:
    assert state_of(EVERY["silver.visits"], [], [], NOW).freshness is Freshness.NEVER


def test_the_log_gives_each_commit_once(lake: Lake) -> None:
    assert published_commits(lake) == []
    published.bronze(lake, {"2026-01-05T10": {"2026-01-05T10": 3}, "2026-01-05T11": {"2026-01-05T11": 4}})
    published.bronze(lake, {"2026-01-05T11": {"2026-01-05T11": 5}})
    EventLog(lake).publications("bronze.visits")
    first, second = published_commits(lake)
    assert (first.version, first.partitions, first.first, first.last) == (0, 2, "2026-01-05T10", "2026-01-05T11")
    assert (first.rows_in, first.rows_out, second.rows_out, second.version) == (7, 7, 5, 1)
    assert first.recorded_at <= second.recorded_at <= datetime.now(timezone.utc)


def test_a_run_costs_what_its_commits_took() -> None:
    commits = [
        COMMIT,
        replace(COMMIT, dataset="silver.visit_conflicts", rows_out=2, seconds=4.0),
        replace(COMMIT, dataset="gold.page_stats", rows_out=10, seconds=6.0, recorded_at=NOW + timedelta(seconds=9)),
        replace(COMMIT, run_id="run-2", rows_out=0, recorded_at=NOW + timedelta(hours=1)),
    ]
    newest, run = run_costs.runs_of(commits, frozenset({"silver.visit_conflicts"}))
    assert (newest.run_id, newest.microseconds_per_row) == ("run-2", None)
    # The companion appears in its main dataset's commit and takes no time of its own.
    assert (run.rows, run.seconds, run.microseconds_per_row) == (20, 10.0, 500_000.0)
    assert (run.began_at, run.ended_at) == (NOW - timedelta(seconds=4), NOW + timedelta(seconds=9))
    assert [(one.dataset, one.seconds) for one in run.datasets] == [
        ("gold.page_stats", 6.0),
        ("silver.visits", 4.0),
        ("silver.visit_conflicts", 0.0),
    ]


def test_measures_are_weighed_by_the_rows(lake: Lake) -> None:
    def measured(rows: int, nulls: float | None, private: int, users: int) -> tuple[int, dict[str, Any]]:
        return rows, {"null_share.referral": nulls, "private": private, "approx_distinct.user_id": users}

    hours = {
        "2026-01-05T10": measured(10, 0.5, 1, 4),
        "2026-01-05T11": measured(30, 0.1, 2, 40),
        "2026-01-06T00": measured(0, None, 0, 0),
        "2026-01-07T00": measured(4, 0.25, 3, 1),
    }
    published.publish(
        lake,
        "silver.visits",
        "event_hour",
        {hour: rows for hour, (rows, _) in hours.items()},
        measures={hour: measures for hour, (_, measures) in hours.items()},
    )
    entries = EventLog(lake).publications("silver.visits")
    found = {each.measure: each for each in measure_trends.trends(EVERY["silver.visits"], entries, days=400)}
    assert found["null_share.referral"].values == pytest.approx([0.2, None, 0.25])
    assert found["private"].values == [3, 0, 3]
    # An approximate count may exceed the number of rows.
    assert found["approx_distinct.user_id"].values == pytest.approx([0.85, None, 0.25])
    assert (found["private"].newest, found["private"].usual) == (3, 1.5)
    (cut,) = {tuple(each.days) for each in measure_trends.trends(EVERY["silver.visits"], entries, days=2)}
    assert cut == ("2026-01-06", "2026-01-07")


def test_a_changed_contract_is_on_record() -> None:
    commits = [
        replace(COMMIT, contract=None),
        replace(COMMIT, version=2),
        replace(COMMIT, version=3),
        replace(COMMIT, version=4, contract="b"),
        replace(COMMIT, dataset="gold.page_stats", version=1),
    ]
    assert [(one.dataset, one.version, one.before, one.after) for one in contract_changes.changes(commits)] == [
        ("gold.page_stats", 1, None, "a"),
        ("silver.visits", 4, "a", "b"),
        ("silver.visits", 2, None, "a"),
    ]


def test_a_table_that_lacks_columns_is_named(lake: Lake) -> None:
    contract = EVERY["gold.page_stats"]
    assert contract_changes.difference(lake, contract) is None
    published.publish(lake, "gold.page_stats", "event_date", {"2026-01-05": 1})
    found = contract_changes.difference(lake, contract)
    assert found is not None
    assert found.surplus == ["rows"]
    assert {"page", "hours_present"} <= set(found.missing)


def test_the_picture_has_every_dataset_once() -> None:
    edges = (
        ("landing.a", "bronze.a"),
        ("bronze.a", "silver.a"),
        ("silver.a", "silver.b"),
        ("silver.a", "silver.a"),
        ("silver.b", "gold.a"),
    )
    names = {name for edge in edges for name in edge} | {"gold.alone"}
    nodes = {name: Node(dataset=name, owner="team:x", published=name != "gold.alone") for name in names}
    lineage = Lineage(nodes=nodes, edges=tuple(LineageEdge(source=one, target=other) for one, other in edges))
    found = lineage_picture.picture(lineage)
    at = {box.dataset: (box.x, box.y) for box in found.boxes}
    assert sorted(at) == sorted(names)
    assert len(set(at.values())) == len(names)
    for curve in found.curves:
        assert at[curve.source][0] < at[curve.target][0]
    assert max(x for x, _ in at.values()) + found.box_width == found.width
    assert [name for name, _ in found.layers] == ["landing", "bronze", "silver", "gold"]
    (middle,) = [box for box in found.boxes if box.dataset == "silver.b"]
    assert (middle.upstream, middle.downstream) == (["bronze.a", "landing.a", "silver.a"], ["gold.a"])
