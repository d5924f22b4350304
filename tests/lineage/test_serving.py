"""PostgreSQL serves each day of both statistics or of neither; conflicts appear together with their visits.

Pattern: Transactional Writer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from blogdata.lake import companions
from blogdata.services.config import PostgresSettings
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.origins import THREE_HOURS, three_hours
from lineage.runs import evaluations
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


def test_conflicts_are_published_with_their_visits(blog: Deployment) -> None:
    published = {name: blog.published(name)[HOUR] for name in ("silver.visits", "silver.visit_conflicts")}
    visits, conflicts = published.values()
    assert visits.run_id == conflicts.run_id
    assert 0 < conflicts.rows_out == visits.measures["conflicts"]
    assert conflicts.inputs["silver.visits"] == visits.version
    assert companions.version_with(blog.lake, "silver.visit_conflicts", visits.version) == conflicts.version
    assert blog.problems() == []
