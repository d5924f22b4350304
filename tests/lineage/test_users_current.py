"""silver.users_current through the platform: one execution a day, in order, and repeated old days (Stateful Merger)."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from assets.transforms.users import IDENTITY
from blogdata.cli.main import app
from blogdata.evidence.executions import state
from blogdata.patterns.security.pseudo_anonymizer import token_of
from blogdata.services import secrets
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from quality.contracts import GRAPH
from quality.contracts.keys import VISITOR_KEY

DATASET = "silver.users_current"
FIFTH, SIXTH, SEVENTH, EIGHTH, NINTH = (f"2026-01-{day:02d}" for day in (5, 6, 7, 8, 9))


def deliver(deployment: Deployment, day: str, logins: dict[str, str], *more: bytes) -> None:
    """Land the users of a day, each with a login, and further lines."""
    folder = deployment.landing / "users" / f"date={day}"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"id": name, "login": login}).encode() for name, login in logins.items()]
    (folder / "users.json").write_bytes(b"".join(line + b"\n" for line in (*lines, *more)))
    (folder / "_SUCCESS").touch()


def users(deployment: Deployment) -> list[tuple[str, str, str]]:
    logins = logins_by_identity(deployment)
    rows = deployment.rows(DATASET, "user_id", "identity", "changed_on")
    return sorted((name, logins[identity], changed_on) for name, identity, changed_on in rows)


def logins_by_identity(deployment: Deployment) -> dict[str, str]:
    """Compute the tokens of all landed users, in plain Python."""
    secret = secrets.read(deployment.settings, VISITOR_KEY).reveal()
    lines = [line for file in deployment.landing.glob("users/*/users.json") for line in file.read_text().splitlines()]
    called = [json.loads(line) for line in lines if line.startswith("{")]
    return {token_of(json.dumps(one, separators=(",", ":")), secret, IDENTITY): one["login"] for one in called}


def executed(deployment: Deployment) -> dict[str, tuple[int, bool]]:
    lines = state(deployment.events.executions(DATASET)).values()
    return {line.execution: (line.version, line.applied) for line in lines}


def agrees_with_history(deployment: Deployment) -> bool:
    """Check that today's users are the current versions of silver.users."""
    history = deployment.asked("SELECT user_id, login FROM silver.users_whole WHERE is_current")
    return sorted(history) == [(name, login) for name, login, _ in users(deployment)]


@pytest.mark.campaign
def test_an_old_day_reruns_all_later_days_once(deploy: Deploy) -> None:
    deployment = deploy("users-current")
    deliver(deployment, FIFTH, {"a": "ann", "b": "bob"}, b'{"id": "a", "login": "again"}', b"no user")
    deliver(deployment, SIXTH, {"a": "ann", "c": "cat"})
    deliver(deployment, EIGHTH, {"a": "amy", "c": "cat"})
    assert deployment.run().problems == []
    assert users(deployment) == [("a", "amy", EIGHTH), ("c", "cat", SIXTH)]
    assert executed(deployment) == {FIFTH: (1, True), SIXTH: (2, True), EIGHTH: (3, True)}
    assert agrees_with_history(deployment)
    table = deployment.lake.caught_up(DATASET)
    assert table is not None
    assert table.metadata().configuration["delta.deletedFileRetentionDuration"] == "interval 32 days"
    fifth = deployment.published(DATASET)[FIFTH]
    assert (fifth.rows_in, fifth.rows_out) == (4, 2)
    assert dict(fifth.reasons) == {"dead_lettered": 1, "duplicates": 1, "kept": 0}

    # A correction of the second day, a late day, and one without a user, which does not count.
    deliver(deployment, SIXTH, {"a": "ann", "c": "cat", "d": "dan"})
    deliver(deployment, SEVENTH, {"a": "amy", "d": "dan"})
    deliver(deployment, NINTH, {}, b"no user")
    assert deployment.run().problems == []
    assert users(deployment) == [("a", "amy", SEVENTH), ("c", "cat", EIGHTH)]
    assert all(applied for _, applied in executed(deployment).values())
    assert agrees_with_history(deployment)
    assert deployment.problems() == []
    assert deployment.run().runs == 0
    corrected = users(deployment)

    home = {"BLOGDATA_HOME": str(deployment.settings.home)}
    planned = CliRunner().invoke(app, ["plan", "--replay", DATASET, "--partitions", SEVENTH, "--json"], env=home)
    (run,) = json.loads(planned.stdout)["runs"]
    assert (run["datasets"], run["partitions"]) == ([DATASET], [SEVENTH, EIGHTH, NINTH])
    assert run["reasons"] == {"asked for": 1, f"reads {DATASET} of {SEVENTH}": 2}

    # The runs of a plan leave downstream work to one another: nothing is merged twice.
    version = deployment.lake.version(DATASET)
    assert version is not None
    assert deployment.replay(DATASET, SEVENTH).problems == []
    assert deployment.lake.version(DATASET) == version + 4, "a restoration and three merges"
    assert users(deployment) == corrected

    # One day again, from the UI: the step itself repeats the later days.
    assert deployment.run(hours=(SIXTH, SIXTH), select=[DATASET]).problems == []
    assert users(deployment) == corrected
    assert all(applied for _, applied in executed(deployment).values())
    assert deployment.problems() == []
    shown = CliRunner().invoke(app, ["sql", "SELECT * FROM ops.versions ORDER BY execution", "--json"], env=home)
    assert [(row["execution"], row["applied"]) for row in json.loads(shown.stdout)] == [
        (day, True) for day in (FIFTH, SIXTH, SEVENTH, EIGHTH, NINTH)
    ]


@pytest.mark.campaign
def test_a_failed_day_stops_the_later_days(deploy: Deploy) -> None:
    """Pattern: Single Runner."""
    deployment = deploy("stopped")
    days = (FIFTH, SIXTH, SEVENTH)
    for number, day in enumerate(days):
        deliver(deployment, day, {"a": f"a{number}", "b": "bob"})
    assert deployment.run(select=["bronze.users"]).problems == []
    for file in (deployment.settings.lake / "bronze" / "users").glob(f"load_date={SIXTH}/*.parquet"):
        file.unlink()
    refused = deployment.run(select=[DATASET])
    assert SIXTH in " ".join(refused.problems)
    assert list(executed(deployment)) == list(deployment.published(DATASET)) == [FIFTH], "the day before is published"
    assert users(deployment) == [("a", "a0", FIFTH), ("b", "bob", FIFTH)]
    assert list(deployment.planner.waiting(GRAPH.task_of(DATASET))) == [SIXTH, SEVENTH]

    # The delivery has fewer lines than were published: a person accepts that.
    deliver(deployment, SIXTH, {"a": "mended"})
    assert deployment.run(for_=[DATASET], accept="size").problems == []
    versions = [version for version, _ in executed(deployment).values()]
    assert (list(executed(deployment)), versions) == (list(days), sorted(versions)), "one after another, in order"
    assert users(deployment) == [("a", "a2", SEVENTH), ("b", "bob", SEVENTH)]
