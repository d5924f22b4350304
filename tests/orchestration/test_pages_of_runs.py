"""Dagster's pages show a command line run like any other: under its job, and in the timeline."""

from __future__ import annotations

import pytest
import yaml

import dagster_pages
from blogdata.cli import ui_command
from lineage.deployment import Deployment
from lineage.runs import newest_tags

RUNS = """
{ runsOrError { ... on Runs { results {
    runId repositoryOrigin { repositoryName repositoryLocationName }
} } } }
"""
JOBS = """
query($repository: RepositorySelector!) { repositoryOrError(repositorySelector: $repository) {
    ... on Repository { jobs { name runs(limit: 5) { runId } } }
} }
"""


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """A deployment with a command line run that found nothing to compute, and so started no Spark."""
    made = Deployment.create(tmp_path_factory.mktemp("pages") / "home")
    assert made.run_requested(datasets=["bronze.visits"]).ok
    return made


def test_the_timeline_and_the_page_of_the_job_have_the_run(deployment: Deployment) -> None:
    with dagster_pages.opened(deployment.settings) as pages:
        (run,) = pages.ask(RUNS)["runsOrError"]["results"]
        jobs = pages.ask(JOBS, repository=dagster_pages.REPOSITORY)["repositoryOrError"]["jobs"]
    # The timeline has a row for each job of each repository, and omits runs without one.
    assert run["repositoryOrigin"] == dagster_pages.REPOSITORY
    assert {job["name"]: job["runs"] for job in jobs if job["runs"]} == {"refresh": [{"runId": run["runId"]}]}


def test_the_daemon_does_not_start_a_killed_command_again(deployment: Deployment) -> None:
    assert newest_tags(deployment)["dagster/max_retries"] == "0"


def test_the_workspace_and_the_ui_call_a_location_the_same() -> None:
    found = yaml.safe_load((ui_command.ROOT / "workspace.yaml").read_text(encoding="utf-8"))
    names = [entry["python_module"]["location_name"] for entry in found["load_from"]]
    assert names == [ui_command.PLATFORM, ui_command.ANALYTICS]
