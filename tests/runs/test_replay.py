"""The job `replay` plans, and carries the plan out in one run of the lineage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from blogdata.contract.partitions import Grain
from blogdata.contract.publication import WHOLE_TABLE
from blogdata.planning.plan import Plan
from blogdata.runs.job import RUNS
from blogdata.runs.lake_resource import LakeResource
from declared import by_grain, computed_from
from published import bronze, deployment, publish
from quality.contracts import CONTRACTS
from sensors import jobs

HOUR = "2026-01-05T03"
HOUR_AGAIN = {"dataset": "silver.visits", "partitions": HOUR}
MAINS = {CONTRACTS[name].main for name in computed_from("silver.visits") | {"silver.visits"}}
"""What a replay of an hour of silver.visits asks for: what appears with a dataset is asked for by its name."""
PROBLEM = "gold.page_stats: too few rows"


@pytest.fixture
def lake(tmp_path: Path) -> LakeResource:
    lake = deployment(tmp_path / "home")
    bronze(lake.lake, {HOUR: {HOUR: 5}})
    for dataset in ("silver.visits", "silver.visit_conflicts", "silver.visits_enriched"):
        column = CONTRACTS[dataset].partition_column
        publish(lake.lake, dataset, column, {HOUR: 1}, inputs={"bronze.visits": 0})
    return lake


def ran(lake: LakeResource, config: Mapping[str, Any], problems: Sequence[str] = ()) -> list[Plan]:
    plans: list[Plan] = []

    def run_plan(plan: Plan) -> SimpleNamespace:
        plans.append(plan)
        return SimpleNamespace(problems=[*problems])

    runs = dg.ResourceDefinition.hardcoded_resource(lambda command: SimpleNamespace(run_plan=run_plan))
    unused = dict.fromkeys(("spark", "deployment"), dg.ResourceDefinition.none_resource())
    result = jobs.replay.execute_in_process(
        resources={"lake": lake, RUNS: runs, **unused},
        run_config={"ops": {"do_replay": {"config": dict(config)}}},
        raise_on_error=False,
    )
    if not result.success:
        failed = result.failure_data_for_node("do_replay")
        raise ValueError(failed.user_failure_data.description if failed and failed.user_failure_data else failed)
    return plans


def test_the_whole_plan_is_one_run(lake: LakeResource) -> None:
    (plan,) = ran(lake, HOUR_AGAIN)
    keys = {Grain.HOUR: [HOUR], Grain.DAY: ["2026-01-05"], Grain.WEEK: ["2026-01-05"], None: [WHOLE_TABLE]}
    assert {main: found or [WHOLE_TABLE] for main, found in plan.wanted().items()} == by_grain(MAINS, keys)
    assert ran(lake, {**HOUR_AGAIN, "only_plan": True}) == []


def test_what_fails_ends_the_job_with_its_reason(lake: LakeResource) -> None:
    with pytest.raises(ValueError, match=PROBLEM):
        ran(lake, HOUR_AGAIN, [PROBLEM])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"dataset": "silver.visit"}, "no dataset is called silver.visit"),
        ({"dataset": "silver.visits"}, "silver.visits is written by partitions"),
        ({"dataset": "silver.visits", "partitions": "2025-01-05"}, "silver.visits has no partition 2025-01-05T00"),
        ({"dataset": "silver.devices", "partitions": "all"}, "silver.devices is written whole"),
    ],
)
def test_replays_of_unknown_data_are_refused(lake: LakeResource, config: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ran(lake, config)
