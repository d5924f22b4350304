"""Runs whose steps are executed side by side: they publish what runs with one step after another publish."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from blogdata.orchestration.names import step_of
from blogdata.services import dagster_home
from lineage import worker
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.origins import three_hours
from lineage.phases import Hold
from quality.contracts import GRAPH

pytestmark = pytest.mark.campaign
AT_ONCE = "BLOGDATA_STEPS_AT_ONCE"
SOME = ("silver.visits_enriched", "silver.sessions", "silver.late_visits", "silver.ads")
HELD = ("gold.page_stats", "gold.referral_stats")


@pytest.fixture(scope="module")
def straight(deploy: Deploy) -> Deployment:
    """Three hours that were published one step after another."""
    made = deploy.published("straight", three_hours)
    assert made.settings.steps_at_once == 1
    return made


@pytest.fixture(scope="module")
def made(straight: Deployment, deploy: Deploy) -> Deployment:
    """The same hours, to be published side by side: some tables by the first test, and the rest by the second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(AT_ONCE, "3")
        found = deploy("side-by-side")
    shutil.copytree(straight.landing, found.landing)
    return found


def spans(deployment: Deployment) -> dict[str, tuple[float, float]]:
    """When each step of the newest run began and ended, by its stored events."""
    with dagster_home.open_instance(deployment.settings) as instance:
        (record,) = instance.get_run_records(limit=1)
        found = instance.get_run_step_stats(record.dagster_run.run_id)
    return {step.step_key: (step.start_time or 0.0, step.end_time or 0.0) for step in found}


def same(made: Deployment, straight: Deployment, *published: str) -> None:
    found = made.contents()
    assert {*published} <= found.keys()
    assert found == {name: straight.contents_of(name) for name in found}
    assert made.problems() == []


def test_steps_side_by_side_publish_the_same_tables(
    made: Deployment, straight: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(AT_ONCE, "3")
    assert made.settings.steps_at_once == 3
    assert made.run(for_=SOME).problems == []
    same(made, straight, *SOME)
    assert made.run(for_=SOME).runs == 0, "nothing is left"
    of_step = spans(made)
    overlaps = {
        (one, other)
        for one, (began, ended) in of_step.items()
        for other, (start, _) in of_step.items()
        if one != other and began <= start < ended
    }
    assert overlaps
    for task in GRAPH.tasks:
        above = {GRAPH.task_of(edge.above).main for edge, _ in GRAPH.edges(task) if edge.above in GRAPH.contracts}
        for main in above - {task.main}:
            assert not {(step_of(main), step_of(task.main)), (step_of(task.main), step_of(main))} & overlaps


def test_a_run_killed_in_two_writes_is_completed_by_the_next(
    made: Deployment, straight: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(AT_ONCE, "2")
    armed = tmp_path / "armed"
    armed.mkdir()
    holds = [Hold(tmp_path / name, name, "audited", again=True).prepare() for name in HELD]
    for name in HELD:
        (armed / name).symlink_to(tmp_path / name)
    run = worker.Worker(
        worker.Job(home=str(made.settings.home), folder=str(tmp_path / "run"), needed=HELD, armed=str(armed))
    )
    for hold in holds:
        hold.reached("audited", lambda: run.working)
    assert run.kill()
    assert [made.published(name) for name in HELD] == [{}, {}]
    for hold in holds:
        hold.release()
    assert made.run(for_=HELD).problems == []
    same(made, straight, *HELD)
