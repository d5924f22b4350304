"""Commands after the platform has run: what a person types and reads.

Pattern: Metadata Decorator, from a row to its run.
"""

from __future__ import annotations

import json
import shutil
from typing import Any

import dagster as dg
import pytest

from blogdata.operate import dagster_home
from blogdata.patterns.quality import schema_migrator
from blogdata.runs import killed_runs
from blogdata.runs.lake_resource import LakeResource
from blogdata.watch.ops import FOLDER, lineage
from declared import computed_from
from lineage.command_line import Said
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.origins import THREE_HOURS, three_hours
from quality.contracts import DECLARED

LAST = THREE_HOURS[-1]


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    return deploy.published("commands", three_hours)


def test_retiring_columns_are_listed_until_removed(said: Said, deployment: Deployment) -> None:
    """Patterns: Schema Compatibility Enforcer, Schema Migrator, Fine-Grained Tracker."""

    code, out, _ = said("schema", "migrations", "--json")
    (migration,) = [row for row in json.loads(out) if row["dataset"] == "gold.referral_stats"]
    assert (code, migration["phase"], migration["read_by"]) == (0, "both", [])
    code, out, _ = said("sql", "SELECT `users`, visitors FROM gold.referral_stats_public", "--json")
    rows = json.loads(out)
    assert (code, bool(rows), [row for row in rows if row["users"] != row["visitors"]]) == (0, True, [])
    code, _, err = said("schema", "remove", "gold.referral_stats", "users")
    assert (code, "the contract still has users" in err) == (2, True)
    asked = (deployment.lake, deployment.events, DECLARED, "silver.visits_enriched", "referral_host")
    names = {reader.name for reader in schema_migrator.readers(*asked, landing=str(deployment.landing))}
    assert names >= {"gold.visits_cube_daily", "gold.visits_weekly", "gold.referral_stats", "gold.audience_hourly"}


def test_the_lineage_asset_exports_each_publication_once_and_shows_the_graph(deployment: Deployment) -> None:
    lake = LakeResource(root=str(deployment.settings.lake), landing=str(deployment.landing))
    written = []
    for _ in range(2):
        result = dg.materialize([lineage], resources={"lake": lake})
        (event,) = result.get_asset_materialization_events()
        written.append(event.materialization.metadata["exported"].value)
    files = list((deployment.landing.parent / FOLDER).rglob("*.json"))
    assert written == [len(files), 0]
    assert len(files) >= 6
    types = [json.loads(line)["eventType"] for line in files[0].read_text().splitlines()]
    assert types == ["START", "COMPLETE"]
    told: Any = event.materialization.metadata
    reads = [edge.data for edge in told["edges"].records]
    assert [edge["from"] for edge in reads if edge["to"] == "silver.visits"] == ["bronze.visits"]
    (visits,) = [row.data for row in told["datasets"].records if row.data["dataset"] == "silver.visits"]
    assert "bronze.visits" in visits["made_of"].split(", ")
    assert "silver.visits_enriched" in visits["made_of_it"].split(", ")
    assert "team:analytics" in visits["tell_before_a_change"].split(", ")


def test_malformed_and_unknown_arguments_end_with_one_message(said: Said) -> None:
    for arguments, message in (
        (("run", "--from", "5 January"), "'5 January' is no day, hour or time"),
        (("run", "--select", "silver.nothing"), "no dataset is called silver.nothing"),
        (("run", "--for", "silver.nothing"), "no dataset is called silver.nothing"),
        (("run", "--for", "gold.page_stats", "--select", "silver.visits"), "what is new or changed runs"),
        (("ledger", "nothing"), "no dataset is called nothing"),
        (("sql", "SELECT * FROM gold.nothing"), "there is no table gold.nothing"),
        (("sql", "SELECT * FROM gold.nothing"), "silver.visits"),
        (("sql", "DROP TABLE gold.page_stats"), "only queries are run here"),
        (("sql", "DROP TABLE gold.page_stats"), "where: 'DROP TABLE gold.page_stats'"),
        (("sql", "SELECT nothing FROM gold.page_stats"), "nothing"),
        (("sql", "SELECT 1 / 0"), "DIVIDE_BY_ZERO"),
        (("sql", "SELECT 1", "--as-of", "yesterday"), "'yesterday' is no day, hour or time"),
    ):
        code, out, err = said(*arguments)
        assert (code, out) == (2, ""), (arguments, err)
        assert message in err
        assert len(err.splitlines()) == 3


def test_a_replay_runs_its_plan_and_commits_record_its_trigger(said: Said, deployment: Deployment) -> None:
    read = {"silver.sessions"} | computed_from("silver.sessions")
    before, contents = deployment.versions(), {name: deployment.contents_of(name) for name in read}
    arguments = ("job", "replay", "dataset=silver.sessions")
    assert said(*arguments, "partitions=2027-01-05")[0] == 1
    code, out, err = said(*arguments, f"partitions={LAST}..{LAST}", "--json")
    told = json.loads(out)
    assert (code, err, told["ok"]) == (0, "", True)
    assert read == {"silver.sessions", "silver.sessions_pending", "gold.sessions_daily"}
    assert {name for run in told["result"]["plan"] for name in run["datasets"].split(", ")} == read
    after = deployment.versions()
    moved = {dataset for dataset, version in after.items() if version != before[dataset]}
    assert moved == {*read, "ops.events"}
    assert {name: deployment.contents_of(name) for name in read} == contents
    code, out, _ = said(
        "sql", "SELECT trigger FROM ops.publications WHERE dataset = 'gold.sessions_daily' AND current", "--json"
    )
    assert [row["trigger"] for row in json.loads(out)] == ["command:job replay"]
    with dagster_home.open_instance(deployment.settings) as instance:
        (run,) = instance.get_runs(limit=1)
    assert killed_runs.own().items() <= run.tags.items(), "otherwise nobody knows when it is dead"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "everything that has landed completely is published, and everything downstream of it"),
        (("--select", "gold.visits_shared"), "nothing has landed for these datasets"),
        (("--for", "gold.page_stats"), "these datasets have everything that has landed completely"),
        (("--from", "2025-01-05", "--to", "2025-01-06"), "no partition of these datasets lies in that span"),
    ],
)
def test_a_run_that_does_nothing_says_why(said: Said, arguments: tuple[str, ...], why: str) -> None:
    assert said("run", *arguments)[:2] == (0, f"nothing to do: {why}\n")


def test_plan_lists_the_runs_of_changed_inputs(said: Said, deployment: Deployment) -> None:
    assert json.loads(said("plan", "--json")[1]) == {"runs": []}
    file = deployment.land(LAST, [event("02:07", "/c")], name="visits-2.json")
    runs = json.loads(said("plan", "--json")[1])["runs"]
    assert runs[0]["datasets"][0] == "bronze.visits"
    stale = {dataset for run in runs for dataset in run["datasets"]}
    assert stale >= {"silver.visits"} | computed_from("silver.visits_enriched")
    assert runs[0]["reasons"] == {"its input changed": 1}
    file.unlink()
    assert json.loads(said("plan", "--json")[1]) == {"runs": []}


def test_strange_and_overdue_hours_warn_without_failing(said: Said, deployment: Deployment) -> None:
    strange = [deployment.land(hour, [event("02:05", "/a")]) for hour in ("2026-02-30T03", "2099-01-01T00")]
    waiting = deployment.land("2026-01-05T04", [event("04:05", "/a")])
    waiting.with_name("_SUCCESS").unlink()
    try:
        told = json.loads(said("run", "--json")[1])["warnings"]
        assert told[0].startswith("visits: 2 folders are complete and not taken in: 2026-02-30T03, 2099-01-01T00")
        assert told[1].startswith("visits: 2 hours are overdue, due 1 h after the end: 2026-01-05T04 (data without")
        assert said("plan")[1].splitlines()[:2] == [f"warning: {line}" for line in told]
        assert json.loads(said("run", "--select", "gold.visits_shared", "--json")[1])["warnings"] == []
    finally:
        for file in (*strange, waiting):
            shutil.rmtree(file.parent)


def test_plan_names_access_logs_not_yet_split(said: Said, deployment: Deployment) -> None:
    log = deployment.landing / "access_logs" / "access.log"
    log.parent.mkdir()
    log.write_text('192.0.2.1 - - [05/Jan/2026:10:05:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"\n')
    try:
        out = said("plan")[1]
        assert ("1 access log(s) are not split into hours yet" in out, "nothing to do" in out) == (True, False)
    finally:
        log.unlink()
