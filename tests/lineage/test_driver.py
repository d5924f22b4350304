"""A materialization, a backfill and `blogdata run` do the same: the same checks, metadata and events, whoever asks."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from blogdata.operate import dagster_home
from blogdata.patterns.idempotency import data_overwrite
from blogdata.runs.names import asset_key, step_of
from blogdata.runs.step import Step
from blogdata.table import publish
from definitions import build
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.origins import THREE_HOURS, three_hours

ROOT = Path(__file__).parents[2]
ENRICHED, BELOW, DAILY = "silver.visits_enriched", "gold.audience_hourly", "gold.page_stats"
HOURS = [f"2026-01-05T{hour:02d}" for hour in range(6)]
DAYS = ["2026-01-05", "2026-01-06"]
MOST = 10
"""Functions from the command to the one that writes, audits and commits."""
VARIES = {"seconds", "table_version", "run_publishes"}
_KINDS = {dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_CHECK_EVALUATION}


@dataclass(frozen=True, kw_only=True)
class Run:
    """What Dagster has of a run: its status, and the events of a dataset's step, in their order."""

    succeeded: bool
    events: list[tuple[object, ...]]

    @property
    def published(self) -> list[str | None]:
        """The published partitions."""
        return [partition for kind, _, partition, *_ in self.events if kind == "rows"]  # type: ignore[misc]


@dataclass(frozen=True)
class World:
    """A deployment, and its definitions as the UI and the daemon have them."""

    deployment: Deployment
    definitions: dg.Definitions

    def command(self, dataset: str, first: str, last: str) -> Run:
        """Compute partitions again as `blogdata run` does."""
        self.deployment.run(select=[dataset], hours=(first, last))
        return self._newest(dataset)

    def launched(self, first: str, last: str, *datasets: str) -> Run:
        """Compute partitions as Dagster does: one by its key, several as the one run of a backfill."""
        graph = self.definitions.resolve_asset_graph()
        job = self.definitions.resolve_implicit_global_asset_job_def()
        keys = {key for name in datasets for key in graph.get(asset_key(name)).execution_set_asset_keys}
        span = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
        chosen: dict[str, Any] = {"partition_key": first} if first == last else {"tags": span}
        with dagster_home.open_instance(self.deployment.settings) as instance:
            job.execute_in_process(asset_selection=[*keys], instance=instance, raise_on_error=False, **chosen)
        return self._newest(datasets[0])

    def _newest(self, dataset: str) -> Run:
        with dagster_home.open_instance(self.deployment.settings) as instance:
            (run,) = instance.get_runs(limit=1)
            entries = instance.all_logs(run.run_id, of_type=_KINDS)
        # Dagster launches the detectors' checks, too, in steps of their own.
        events = [entry.get_dagster_event() for entry in entries if entry.step_key == step_of(dataset)]
        return Run(succeeded=run.is_success, events=[_comparable_event(event) for event in events])


def _comparable_event(logged: dg.DagsterEvent) -> tuple[object, ...]:
    if logged.event_type == dg.DagsterEventType.ASSET_MATERIALIZATION:
        rows = logged.step_materialization_data.materialization
        return "rows", rows.asset_key, rows.partition, _comparable(rows.metadata), sorted(rows.tags or ())
    check = logged.asset_check_evaluation_data
    shown = check.passed, check.severity, check.description
    return "check", check.asset_key, check.check_name, shown, _comparable(check.metadata)


def _comparable(metadata: Any) -> dict[str, object]:
    return {name: None if name in VARIES else value.value for name, value in metadata.items()}


@pytest.fixture(scope="module")
def world(deploy: Deploy) -> World:
    """Six published hours of one day, and one of the next."""
    made = deploy.published("driver", three_hours)
    for hour in (*HOURS[len(THREE_HOURS) :], f"{DAYS[1]}T00"):
        made.land(hour, [event(f"{hour[11:]}:05", "/more", event_time=f"{hour}:05:00Z")])
    assert made.run(for_=[DAILY]).problems == []
    return World(made, build(made.settings))


@pytest.mark.parametrize(
    ("dataset", "partitions"), [(ENRICHED, HOURS[:1]), (ENRICHED, HOURS), (DAILY, DAYS)], ids=["one", "hours", "days"]
)
def test_what_is_launched_does_as_a_command_does(world: World, dataset: str, partitions: list[str]) -> None:
    first, last = partitions[0], partitions[-1]
    asked, launched = world.command(dataset, first, last), world.launched(first, last, dataset)
    assert [pair for pair in zip_longest(asked.events, launched.events) if pair[0] != pair[1]] == []
    assert launched == asked
    assert (launched.succeeded, launched.published) == (True, partitions)
    newest = world.deployment.published(dataset)
    assert len({newest[key].version for key in partitions}) == 1
    assert world.deployment.problems() == []


def test_a_failed_audit_publishes_nothing_whoever_asks_and_stops_what_is_below(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish: Callable[..., Any] = Step.publish
    monkeypatch.setattr(
        Step, "publish", lambda step, rows, *given, **named: publish(step, rows.limit(0), *given, **named)
    )
    before = world.deployment.versions()
    asked, launched = world.command(ENRICHED, HOURS[0], HOURS[0]), world.launched(HOURS[0], HOURS[0], ENRICHED, BELOW)
    assert launched == asked
    assert (launched.succeeded, launched.published) == (False, [])
    assert [shown[0] for _, _, name, shown, *_ in launched.events if name == "ledger"] == [False]  # type: ignore[index]
    after = world.deployment.versions()
    assert {**after, "ops.events": 0} == {**before, "ops.events": 0}


def test_a_command_reaches_the_commit_by_the_functions_of_the_page(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\d+\. `(?:\w+\.)?(\w+)` \(\[[^]]+\]\(\.\./\.\./([^)]+)\)\)", page, re.MULTILINE)
    found: list[tuple[str, str]] = []

    def noted(*given: Any, **named: Any) -> Any:
        codes = [frame.f_code for frame, _ in traceback.walk_stack(sys._getframe(1))]
        places = [(code.co_name, Path(code.co_filename)) for code in reversed(codes)]
        found[:] = [
            (name, file.relative_to(ROOT).as_posix())
            for name, file in places
            if file.is_relative_to(ROOT) and file.relative_to(ROOT).parts[0] in ("platform", "assets")
        ]
        return publish.publish(*given, **named)

    monkeypatch.setattr(data_overwrite, "publish", noted)
    world.command("bronze.visits", HOURS[0], HOURS[0])
    assert [*found, ("publish", "platform/blogdata/table/publish.py")] == listed
    assert len(listed) <= MOST
