"""Each button of Dagster's pages does what it says: both code locations loaded, by the queries that the pages send.

The server, the daemon and the runs are those of `blogdata ui`. What one click launches for many assets is one run here.
That a launched run does what a command does is for `test_driver.py`, in the suite.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import pytest

from blogdata.operate.dagster_home import ANALYTICS
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.origins import THREE_HOURS, three_hours
from ui.buttons import Buttons, Key, Run
from ui.served import Served, environment

pytestmark = pytest.mark.campaign
PLATFORM = "definitions"
DAY, WEEK = "2026-01-05", "2026-01-05"
HOURS_AGAIN = THREE_HOURS[:2]
HOURLY = ("gold", "audience_hourly")
WAITS = ("gold", "returning_visitors")
"""It is refused by name as long as no week has ended."""
Launched = tuple[list[Key], str | None, str]
NEWEST = {"hourly": THREE_HOURS[-1], "daily": DAY, "weekly": WEEK, "": None}


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    return deploy.published("buttons", three_hours)


@pytest.fixture(scope="module")
def buttons(deployment: Deployment) -> Iterator[Buttons]:
    served = Served(home=deployment.settings.home, environ=environment(deployment.settings.home))
    try:
        served.start()
        yield Buttons(served)
    finally:
        if served.process is not None:
            served.stop()
        served.run("down")


def executable(buttons: Buttons, location: str) -> list[Key]:
    return [key for key, node in buttons.nodes.items() if node["isExecutable"] and buttons.location(key) == location]


def grain(buttons: Buttons, key: Key) -> str:
    definition = buttons.nodes[key]["partitionDefinition"]
    return "" if definition is None else str(definition["description"]).partition(",")[0].lower()


@pytest.fixture(scope="module")
def launched(buttons: Buttons, deployment: Deployment) -> Mapping[str, Launched]:
    """A run for each partition space of each location, and one for `ops`."""
    # A person has asked for the tables of complete weeks.
    weeks = deployment.published("gold.visits_weekly")
    assert deployment.replay("gold.visits_snowflake_views", *weeks).problems == []
    groups: dict[tuple[str, str], list[Key]] = defaultdict(list)
    for location in (PLATFORM, ANALYTICS):
        for key in executable(buttons, location):
            if key != WAITS:
                groups["ops" if key[0] == "ops" else location, grain(buttons, key)].append(key)
    found: dict[str, Launched] = {}
    # The hours first: what is computed from them is to be newer.
    for (name, space), keys in sorted(groups.items(), key=lambda group: group[0][1] != "hourly"):
        run_id = buttons.materialize(keys, NEWEST[space])
        if space == "hourly":
            buttons.ended(run_id)
        found[f"{name} {space}".strip()] = (keys, NEWEST[space], run_id)
    return found


def test_each_dialog_loads(buttons: Buttons) -> None:
    """The dialogs of one asset, of each group and of each location; a group may need assets of another one."""
    groups: dict[tuple[str, str], list[Key]] = defaultdict(list)
    for location in (PLATFORM, ANALYTICS):
        for key in executable(buttons, location):
            groups[location, ""].append(key)
            groups[location, buttons.nodes[key]["groupName"]].append(key)
            groups[location, "/".join(key)].append(key)
    assert {location for location, _ in groups} == {PLATFORM, ANALYTICS}
    faults = {names: buttons.preview(names[0], buttons.with_required(keys)) for names, keys in groups.items()}
    assert {names: fault for names, fault in faults.items() if fault} == {}


def test_each_asset_is_launched_with_its_checks(
    buttons: Buttons, deployment: Deployment, launched: Mapping[str, Launched]
) -> None:
    ended = {name: buttons.ended(run_id) for name, (_, _, run_id) in launched.items()}
    assert {name: run.errors for name, run in ended.items() if run.status != "SUCCESS"} == {}
    for name, (keys, partition, run_id) in launched.items():
        assert_equals_the_ledger(deployment, ended[name], keys, partition, run_id)
        # A stream without input materializes nothing.
        computed = {key for key, _ in ended[name].materialized}.intersection(keys)
        assert set(buttons.checks(computed)) <= set(ended[name].checks), name
        assert [key for key, green in ended[name].checks.items() if not green] == [], name
    # Afterwards, as it publishes the same hours.
    (run_id,) = buttons.runs_of(buttons.backfill([HOURLY], HOURS_AGAIN))
    run = buttons.ended(run_id)
    assert (run.status, run.errors) == ("SUCCESS", ())
    assert run.materialized == {(HOURLY, hour) for hour in HOURS_AGAIN}
    for hour in HOURS_AGAIN:
        assert_equals_the_ledger(deployment, run, [HOURLY], hour, run_id)
    assert deployment.problems() == []


def test_what_cannot_be_computed_yet_is_refused_by_name(buttons: Buttons, deployment: Deployment) -> None:
    run = buttons.ended(buttons.materialize([WAITS]))
    assert (run.status, run.materialized) == ("FAILURE", frozenset())
    assert any("no week with visitors has ended" in error for error in run.errors), run.errors
    assert deployment.published(".".join(WAITS)) == {}


def assert_equals_the_ledger(
    deployment: Deployment, run: Run, keys: list[Key], partition: str | None, run_id: str
) -> None:
    """Each dataset's newest publication of the partition is by this run, and the run has an event of it."""
    for key in keys:
        entry = deployment.published(".".join(key)).get(partition or "")
        if entry is not None:
            assert (key, partition) in run.materialized
            assert entry.run_id == run_id, key


def test_checks_are_executed_alone_and_compute_nothing(buttons: Buttons, deployment: Deployment) -> None:
    checks = buttons.checks(buttons.nodes, alone=True)
    assert {buttons.location(key) for key, _ in checks} == {PLATFORM}
    before = deployment.versions()
    run = buttons.ended(buttons.execute(PLATFORM, checks))
    assert (run.status, run.errors, run.materialized) == ("SUCCESS", (), frozenset())
    assert set(run.checks) == set(checks)
    assert deployment.versions() == before


def test_all_partitions_of_a_group_and_of_everything_can_be_launched(buttons: Buttons) -> None:
    """A week is among them whose days are partly to come."""
    groups: dict[str, list[Key]] = defaultdict(list)
    for key, node in buttons.nodes.items():
        if node["isExecutable"]:
            groups["everything"].append(key)
            groups[node["groupName"]].append(key)
    faults = {name: buttons.materialize_all(keys) for name, keys in groups.items()}
    assert {name: fault for name, fault in faults.items() if fault} == {}
