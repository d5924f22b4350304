"""Audits of the lineage: refusals, kept rows, warnings, lifted audits and later checks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import dagster as dg
import pytest

from blogdata.orchestration.audit_warnings import AUDITS
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.patterns.quality.offline_observer import observations
from blogdata.planning.findings import Observed as Looked
from blogdata.planning.findings import standing
from blogdata.planning.snapshot import Snapshot
from blogdata.publish import refused
from blogdata.publish.audit import guard_of, warnings
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.runs import evaluations
from quality.contracts import GRAPH
from quality.profiles import KEY, OBSERVED, check_name, profiles
from resources.spark import SparkResource
from resources.zone import zone_of

REPEATED, CONFLICTING = "2026-01-05T11", "2026-01-05T12"
ENRICHED = "silver.visits_enriched"
PROFILED = (ENRICHED, "silver.late_visits")


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    """An ordinary hour, one whose only event arrived eleven times, and one in which a tenth of the events conflict."""
    found = deploy("audited")
    folder = found.landing / "users" / "date=2026-01-04"
    folder.mkdir(parents=True)
    users = [{"id": f"user-{page}", "login": page, "email": f"{page}@example.org"} for page in ("a", "b")]
    registered = {"registered_datetime": "2026-01-01T00:00:00Z"}
    (folder / "users.json").write_text("".join(json.dumps({**user, **registered}) + "\n" for user in users))
    (folder / "_SUCCESS").touch()
    found.land("2026-01-05T10", [event(f"10:{minute:02d}", page) for minute in range(60) for page in ("a", "b", "c")])
    found.land(REPEATED, [event("11:05", "a")] * 11)
    clear = [event(f"12:{minute:02d}", page) for minute in range(60) for page in ("a", "b", "c")]
    found.land(CONFLICTING, [*clear, *[event(f"12:{minute:02d}", "a", user_id="user-x") for minute in range(20)]])
    return found


def _standing(deployment: Deployment) -> list[tuple[str, str, str]]:
    look = Snapshot(zone_of(deployment.settings), deployment.events)
    now = datetime(2026, 1, 5, 14, tzinfo=timezone.utc)
    return [(one.source, one.dataset, one.what) for one in standing(Looked(graph=GRAPH, look=look, now=now))]


@pytest.mark.campaign
def test_a_refused_hour_is_kept_and_others_go_on(deployment: Deployment) -> None:
    outcome = deployment.run(for_=PROFILED)
    check, problem = outcome.problems
    assert "silver/visits:contract failed" in check
    assert "bounded_duplicates" in problem
    assert set(deployment.published("silver.visits")) == {"2026-01-05T10", CONFLICTING}
    (batch,) = refused.kept(deployment.lake)
    assert (batch.dataset, batch.partitions, batch.rows) == ("silver.visits", (REPEATED,), 1)
    (row,) = deployment.pasted(problem)
    assert 11 in row, "the row says that it stands for eleven"
    assert [what for source, _, what in _standing(deployment) if source == "waiting"] != []
    assert not deployment.run(for_=["silver.visits"]).ok, "it is not retried in vain, and still waits"


@pytest.mark.campaign
def test_conflicts_are_published_with_a_warning(deployment: Deployment) -> None:
    entries = deployment.published("silver.visits")
    assert {key: warnings(entry) for key, entry in entries.items()} == {
        "2026-01-05T10": [],
        CONFLICTING: ["few_conflicts"],
    }
    newest = evaluations(deployment, "silver.visits", AUDITS)[-1]
    assert (newest.passed, newest.severity) == (False, dg.AssetCheckSeverity.WARN)
    (found,) = [what for source, dataset, what in _standing(deployment) if source == "audits"]
    assert "few_conflicts" in found
    assert CONFLICTING in found


def _observe(deployment: Deployment) -> dg.ExecuteInProcessResult:
    settings = deployment.settings
    with dg.DagsterInstance.ephemeral() as instance:
        return dg.materialize(
            [profiles],
            resources={
                "spark": SparkResource(home=str(settings.home)),
                "lake": LakeResource(root=str(settings.lake), landing=str(settings.landing)),
            },
            instance=instance,
        )


def _periods(result: dg.ExecuteInProcessResult) -> int:
    (event,) = result.asset_materializations_for_node("ops__profiles")
    return int(event.metadata["periods"].value)  # type: ignore[arg-type]


def _checks(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    return {found.check_name: found for found in result.get_asset_check_evaluations()}


@pytest.mark.campaign
def test_only_new_partitions_are_profiled(deployment: Deployment) -> None:
    first = _observe(deployment)
    assert all(check.passed for check in _checks(first).values())
    (day,) = observations(deployment.events, ENRICHED)
    assert (day.profile.period, day.profile.rows) == ("2026-01-05", 360)
    assert dict(day.profile.columns["page"].counts) == {"a": 120, "b": 120, "c": 120}
    assert day.profile.columns["user_registered"].null_share == pytest.approx(120 / 360)
    assert _periods(_observe(deployment)) == 0
    deployment.land("2026-01-06T00", [event("12:59", "late"), event("13:30", "other")])
    assert deployment.run(for_=PROFILED, accept=guard_of("silver.visits", "bounded_duplicates")).ok
    assert _periods(_observe(deployment)) == 2, "the days of visits and of late rows"
    (again,) = observations(deployment.events, ENRICHED)
    assert again.profile.rows == 363


@pytest.mark.campaign
def test_a_lifted_audit_has_published_the_hour(deployment: Deployment) -> None:
    assert warnings(deployment.published("silver.visits")[REPEATED]) == ["bounded_duplicates"]
    assert deployment.problems() == []
    assert "waiting" not in {source for source, _, _ in _standing(deployment)}


@pytest.mark.campaign
def test_a_reference_to_nothing_is_an_orphan(deployment: Deployment) -> None:
    with deployment.session() as spark:
        spark.sql(f"DELETE FROM delta.`{deployment.lake.path('silver.users')}` WHERE user_id = 'user-a'")
    deployment.land("2026-01-05T13", [event("13:05", "b")])
    hour = ("2026-01-05T13", "2026-01-05T13")
    assert deployment.run(select=["bronze.visits", "silver.visits", ENRICHED], hours=hour).ok
    check = _checks(_observe(deployment))[check_name("references", ENRICHED)]
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert check.description is not None
    assert "121 rows refer to nothing in silver.users" in check.description
    assert ("references", ENRICHED) in {(source, dataset) for source, dataset, _ in _standing(deployment)}


def test_every_observed_dataset_has_its_checks() -> None:
    names: Sequence[Any] = [spec.name for spec in profiles.check_specs]
    assert len(names) == len(set(names))
    assert {name.split("_", 1)[1] for name in names} == {name.replace(".", "_") for name in OBSERVED}
    assert all(spec.asset_key == KEY for spec in profiles.check_specs)
    assert timedelta(days=1) < refused.KEPT
