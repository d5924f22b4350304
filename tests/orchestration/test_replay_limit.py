"""A replay of more days than the limit: everything else is planned and run, and one command confirms the rest."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence

import dagster as dg
import pytest
from typer.testing import CliRunner, Result

from blogdata.cli.main import app
from blogdata.erasure.plan import REASON, built_anew, planned
from blogdata.errors import ConfigurationError
from blogdata.evidence.executions import ReplayTooLong
from blogdata.orchestration import replays
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.planning.plan import ASKED
from blogdata.publish.partitions import Grain, parse_keys
from lineage.deployment import Deployment
from published import days, publish, whole
from sensors.replays import plan_replay

DATASET = "silver.users_current"
LATE = "2026-01-03"
GAPS = {"2026-01-10", "2026-02-01"}
DAYS = tuple(day for day in parse_keys("2026-01-05..2026-02-12", Grain.DAY) if day not in GAPS)
WITHOUT = f"{len(DAYS)} later executions would run again after {LATE}, the limit is 30"


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """Days of users, two of them empty; the first delivery arrives after all others have been merged."""
    made = Deployment.create(tmp_path_factory.mktemp("late") / "home")
    made.landing.mkdir(parents=True, exist_ok=True)
    read = days(made.lake, *DAYS)
    for day in DAYS:
        publish(made.lake, DATASET, None, {day: 1}, inputs={"bronze.users": read})
    late = days(made.lake, LATE)
    for dataset in ("silver.identities", "silver.users"):
        whole(made.lake, dataset, inputs={"bronze.users": late})
    return made


Said = Callable[..., Result]


@pytest.fixture
def said(deployment: Deployment) -> Said:
    """Runs a command; returns its exit code and output."""
    home = {"BLOGDATA_HOME": str(deployment.settings.home)}
    return lambda *arguments: CliRunner().invoke(app, arguments, env=home)


def advised(text: str) -> list[str]:
    """Extract the suggested command from a message."""
    return shlex.split(text.strip().splitlines()[-1].partition("blogdata ")[2])


def executed(ended: Result) -> list[str]:
    """List the days that a plan has for the table."""
    return [
        day for run in json.loads(ended.stdout)["runs"] if run["datasets"] == [DATASET] for day in run["partitions"]
    ]


def test_a_run_reports_the_replay_that_needs_confirmation(said: Said) -> None:
    ended = said("run", "--json")
    (problem,) = json.loads(ended.stdout)["problems"]
    assert (ended.exit_code, problem.splitlines()[0]) == (1, WITHOUT)
    ended = said("run")
    assert (ended.exit_code, WITHOUT in ended.stdout, "nothing to do" in ended.stdout) == (1, True, False)


def test_advised_command_plans_the_whole_range_of_days(said: Said) -> None:
    problem = json.loads(said("run", "--json").stdout)["problems"][0]
    assert advised(problem) == ["plan", "--replay", DATASET, "--partitions", f"{LATE}..{DAYS[-1]}"]
    ended = said(*advised(problem), "--json")
    assert (ended.exit_code, executed(ended)) == (0, [LATE, *DAYS])
    assert executed(said("plan", "--replay", DATASET, "--partitions", "all", "--json")) == [LATE, *DAYS]


def test_a_plan_omits_refused_days_and_gives_reasons(said: Said, deployment: Deployment) -> None:
    folder = deployment.landing / "users" / "date=2026-02-13"
    folder.mkdir(parents=True)
    (folder / "_SUCCESS").touch()
    try:
        ended = said("plan", "--json")
    finally:
        (folder / "_SUCCESS").unlink()
        folder.rmdir()
    told = json.loads(ended.stdout)
    assert [run["datasets"] for run in told["runs"]] == [["bronze.users"], ["silver.users"], ["silver.identities"]]
    assert told["refused"] == [str(ended.exception)]
    assert isinstance(ended.exception, ReplayTooLong)
    assert ended.exception.what == WITHOUT


def test_an_upstream_replay_omits_the_limited_table(said: Said) -> None:
    ended = said("plan", "--replay", "bronze.users", "--partitions", LATE)
    assert isinstance(ended.exception, ReplayTooLong)
    assert ("bronze.users" in ended.stdout, DATASET in ended.stdout) == (True, False)
    assert executed(said(*advised(str(ended.exception)), "--json")) == [LATE, *DAYS]
    ended = said("plan", "--replay", DATASET, "--partitions", LATE)
    assert isinstance(ended.exception, ReplayTooLong)
    assert ended.stdout == "", "for the table alone nothing is left to plan"


def test_an_erasure_builds_the_limited_table_anew(deployment: Deployment) -> None:
    asked = planned(deployment.planner, {"bronze.users": {LATE: REASON}})
    assert (asked.refused, asked.wanted()[DATASET]) == ((), [LATE, *DAYS])
    assert built_anew(deployment.planner).wanted() == {DATASET: [LATE, *DAYS]}


def asking(instance: dg.DagsterInstance, lake: LakeResource, dataset: str) -> dg.OpExecutionContext:
    config = {"dataset": dataset, "partitions": LATE}
    return dg.build_op_context(resources={"lake": lake}, instance=instance, op_config=config)


def test_a_ui_replay_omits_the_limited_table(deployment: Deployment) -> None:
    lake = LakeResource(root=str(deployment.settings.lake), landing=str(deployment.landing))
    with dg.DagsterInstance.ephemeral() as instance:
        context = asking(instance, lake, "bronze.users")
        plan_replay(context)
        assert WITHOUT in str(context.get_output_metadata("result"))
        (asked,) = replays.unfinished(lake.events)
        assert [run.datasets for run in asked.runs] == [("bronze.users",), ("silver.users",), ("silver.identities",)]
        replays.close(lake.events, asked)
        with pytest.raises(dg.Failure, match=WITHOUT):
            plan_replay(asking(instance, lake, DATASET))
        assert replays.unfinished(lake.events) == []


@pytest.mark.parametrize(
    ("partitions", "found"),
    [
        (f"{LATE}..2026-01-06", [LATE, "2026-01-05", "2026-01-06"]),
        ("2026-01-09..2026-01-11", ["2026-01-09", "2026-01-11"]),
        ("2026-01-31..2026-02-01, 2026-02-03", ["2026-01-31", "2026-02-03"]),
        ("2025-01-01..2026-01-05", [LATE, "2026-01-05"]),
        ("2026-02-11..9999-12-31", ["2026-02-11", "2026-02-12"]),
        ("0001-01-01..2026-01-05", [LATE, "2026-01-05"]),
    ],
)
def test_a_range_resolves_to_its_existing_partitions(
    deployment: Deployment, partitions: str, found: Sequence[str]
) -> None:
    assert deployment.planner.resolve_keys(DATASET, partitions) == found


@pytest.mark.parametrize(
    ("partitions", "missing"),
    [("2026-01-10", "2026-01-10"), ("2026-01-09, 2026-01-10", "2026-01-10"), ("2025-01-01..2025-01-02", "2025-01-01")],
)
def test_missing_keys_and_empty_ranges_are_refused(deployment: Deployment, partitions: str, missing: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{DATASET} has no partition {missing}"):
        deployment.planner.resolve_keys(DATASET, partitions)


def test_replays_within_the_limit_are_planned(deployment: Deployment) -> None:
    within = deployment.planner.plan_of_replay({DATASET: {DAYS[-31]: ASKED}})
    assert [key for run in within.runs for key in run.keys] == list(DAYS[-31:])
    assert within.refused == ()
