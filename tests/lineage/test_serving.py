"""PostgreSQL serves each day of both statistics or of neither; conflicts appear together with their visits.

Pattern: Transactional Writer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import openlineage_events
from assets.transforms.live_visits import STREAM
from blogdata.lake import companions
from blogdata.patterns.observability import dataset_tracker
from blogdata.services.postgres_settings import PostgresSettings
from blogdata.simulator.faults import FaultRates
from blogdata.simulator.spec import SimulationSpec
from lineage import live
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.origins import THREE_HOURS, three_hours
from lineage.runs import evaluations
from quality.contracts import DECLARED
from quality.contracts.serving import DAILY_STATS

DATASET = DAILY_STATS.dataset
SERVED = [read.dataset for read in DAILY_STATS.reads]
HOUR = THREE_HOURS[-1]
LONG = f"/a-page-of-a-{'very-' * 20}long-name"


@pytest.fixture(scope="module")
def blog(deploy: Deploy) -> Deployment:
    """A deployment whose first runs had no PostgreSQL."""
    return deploy.published("served", three_hours)


@pytest.fixture
def serving(blog: Deployment, database: str) -> Iterator[Deployment]:
    """The same deployment, with an empty database."""
    file = blog.settings.home / "blogdata.toml"
    before = file.read_text()
    file.write_text(before + f'\n[postgres]\nurl = "{database}"\n')
    yield Deployment(settings=replace(blog.settings, postgres=PostgresSettings(url=database)))
    file.write_text(before)


def shown(serving: Deployment) -> dict[str, dict[str, int]]:
    """Read page views by day from each of the two tables."""
    found: dict[str, dict[str, int]] = {}
    assert serving.settings.postgres.url is not None
    with psycopg.connect(serving.settings.postgres.url) as connection:
        for dataset in SERVED:
            name = dataset.split(".")[1]
            query = f"SELECT event_date, sum(events)::int FROM serving.{name} GROUP BY 1"
            found[name] = dict(connection.execute(query).fetchall())
    return found


def test_deployments_without_postgres_serve_nothing(blog: Deployment) -> None:
    # The first run looks at the landed files, which were copied.
    assert (blog.run(for_=SERVED).problems, blog.run(for_=SERVED).runs) == ([], 0)
    with pytest.raises(Exception, match=rf"no dataset is called {DATASET}"):
        blog.run(select=[DATASET])


def test_changed_days_are_served_once_and_atomically(serving: Deployment) -> None:
    assert serving.run(for_=[DATASET]).problems == []
    views = len(serving.rows("silver.visits", "visit_id"))
    assert views > 0
    assert shown(serving) == {"page_stats": {HOUR[:10]: views}, "referral_stats": {HOUR[:10]: views}}
    assert serving.run(for_=[DATASET]).runs == 0, "served days are not served again"
    with psycopg.connect(serving.settings.postgres.url or "") as connection:
        for table in ("page_stats", "referral_stats"):
            assert connection.execute(f"SELECT DISTINCT hours_present FROM serving.{table}").fetchall() == [(3,)]
    (found,) = evaluations(serving, DATASET, "complete")[:1]
    assert (found.passed, found.description) == (True, f"{HOUR[:10]} has 3 of 24 hours so far")

    # Another run of the day finds its batch served.
    assert serving.run(select=[DATASET], hours=(HOUR[:10], HOUR[:10])).problems == []
    assert shown(serving)["page_stats"] == {HOUR[:10]: views}

    serving.land(HOUR, [event(f"{HOUR[-2:]}:40", LONG)], "another.json")
    with psycopg.connect(serving.settings.postgres.url or "") as connection:
        connection.execute("ALTER TABLE serving.page_stats ALTER page TYPE varchar(99)")
    refused = serving.run(for_=[DATASET])
    assert "StringDataRightTruncation" in " ".join(refused.problems)
    assert shown(serving) == {"page_stats": {HOUR[:10]: views}, "referral_stats": {HOUR[:10]: views}}

    with psycopg.connect(serving.settings.postgres.url or "") as connection:
        connection.execute("ALTER TABLE serving.page_stats ALTER page TYPE text")
    assert serving.run(for_=[DATASET]).problems == []
    assert shown(serving) == {"page_stats": {HOUR[:10]: views + 1}, "referral_stats": {HOUR[:10]: views + 1}}


@pytest.mark.campaign
def test_a_refused_day_keeps_no_later_day_waiting(serving: Deployment) -> None:
    later = "2026-01-08T10"
    serving.land(later, [event("10:05", "/\0", event_time=f"{later}:05:00Z")])
    assert serving.run().problems == []
    with psycopg.connect(serving.settings.postgres.url or "") as connection:
        assert ("/\u2400",) in connection.execute("SELECT page FROM serving.page_stats").fetchall()
        connection.execute("TRUNCATE serving.page_stats, serving.referral_stats, serving.publications")
        connection.execute(f"ALTER TABLE serving.page_stats ADD CHECK (event_date <> '{HOUR[:10]}')")
    refused = serving.run()
    assert "CheckViolation" in " ".join(refused.problems)
    assert shown(serving)["page_stats"] == {later[:10]: 1}

    # Runs use the address that the deployment records.
    file = serving.settings.home / "blogdata.toml"
    file.write_text(file.read_text().replace(serving.settings.postgres.url or "", "postgresql://a:b@127.0.0.1:1/c"))
    assert "does not answer" in " ".join(serving.run().problems)


@pytest.mark.campaign
def test_lineage_contains_every_dataset_with_its_declared_inputs(deploy: Deploy, database: str, tmp_path: Path) -> None:
    """Patterns: Dataset Tracker, Checkpointer."""
    whole = deploy("whole")
    with (whole.settings.home / "blogdata.toml").open("a") as settings:
        settings.write(f'\n[postgres]\nurl = "{database}"\n')
    whole = Deployment(settings=replace(whole.settings, postgres=PostgresSettings(url=database)))
    whole.simulate(SimulationSpec(days=1, visits_per_day=200, seed=5, faults=FaultRates.none(not_json=0.05, late=0.1)))
    assert whole.run().problems == []
    live.tick(whole, STREAM)

    assert whole.undeclared() == set(), "the table of the ledger in docs/explanation/architecture.md names every reason"

    # A companion is computed from the inputs of its main dataset.
    declared = {
        (read.dataset, name)
        for name, contract in DECLARED.items()
        for read in (*contract.reads, *DECLARED[contract.main].reads)
        if read.dataset != name
    }
    landing = str(whole.landing)
    graph = dataset_tracker.track(whole.lake, whole.events, DECLARED, landing=landing)
    assert {name for name, node in graph.nodes.items() if node.published} == set(DECLARED)
    assert {(edge.source, edge.target) for edge in graph.edges if edge.source != edge.target} == declared
    assert {edge.source for edge in graph.edges if edge.version is None} == {
        "landing.visits",
        "landing.users",
        "landing.devices",
    }

    dataset_tracker.export_openlineage(whole.lake, whole.events, DECLARED, landing=landing, folder=tmp_path)
    exported = [json.loads(line) for file in tmp_path.rglob("*.json") for line in file.read_text().splitlines()]
    assert all(openlineage_events.check(event) for event in exported)
    told = {(read["name"], event["job"]["name"]) for event in exported for read in event["inputs"]}
    assert {(source, target) for source, target in told if source != target} == declared
    served = [
        event["inputs"] for event in exported if event["job"]["name"] == DATASET and event["eventType"] == "COMPLETE"
    ]
    newest = {name: {entry.version for entry in whole.published(name).values()} for name in SERVED}
    assert served
    for inputs in served:
        versions = {one["name"]: int(one["facets"]["version"]["datasetVersion"]) for one in inputs}
        assert all(versions[name] in newest[name] for name in SERVED)


def test_conflicts_are_published_with_their_visits(blog: Deployment) -> None:
    published = {name: blog.published(name)[HOUR] for name in ("silver.visits", "silver.visit_conflicts")}
    visits, conflicts = published.values()
    assert visits.run_id == conflicts.run_id
    assert 0 < conflicts.rows_out == visits.measures["conflicts"]
    assert conflicts.inputs["silver.visits"] == visits.version
    assert companions.version_with(blog.lake, "silver.visit_conflicts", visits.version) == conflicts.version
    assert blog.problems() == []
