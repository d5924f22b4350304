"""A deployment with a PostgreSQL serves each day's statistics from it, of both datasets or of neither; and conflicts
appear with their visits.

Pattern: Transactional Writer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from assets.serving.daily_stats import DATASET, SERVED
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from patterns.core import companions
from services.config import PostgresSettings

HOUR = "2026-01-05T10"
FIRST = [event("10:05", "/a"), event("10:06", "/b"), event("10:06", "/b", keep_private=True)]


@pytest.fixture(scope="module")
def blog(deploy: Deploy) -> Deployment:
    """A deployment whose first run has no PostgreSQL."""
    made = deploy("served")
    made.land(HOUR, FIRST)
    assert made.run().problems == []
    return made


@pytest.fixture
def serving(blog: Deployment, database: str) -> Iterator[Deployment]:
    """The same deployment, with an empty database."""
    file = blog.settings.home / "blogdata.toml"
    before = file.read_text()
    file.write_text(before + f'\n[postgres]\nurl = "{database}"\n')
    yield Deployment(settings=replace(blog.settings, postgres=PostgresSettings(url=database)))
    file.write_text(before)


def shown(serving: Deployment) -> dict[str, dict[str, int]]:
    """Page views by day, as each of the two tables tells them."""
    found: dict[str, dict[str, int]] = {}
    assert serving.settings.postgres.url is not None
    with psycopg.connect(serving.settings.postgres.url) as connection:
        for dataset in SERVED:
            name = dataset.split(".")[1]
            query = f"SELECT event_date, sum(events)::int FROM serving.{name} GROUP BY 1"
            found[name] = dict(connection.execute(query).fetchall())
    return found


def test_without_a_postgresql_nothing_is_served_and_nothing_is_said(blog: Deployment) -> None:
    outcome = blog.run()
    assert (outcome.runs, outcome.problems) == (0, [])
    with pytest.raises(Exception, match=rf"no dataset is called {DATASET}"):
        blog.run(select=[DATASET])


def test_a_day_is_served_once_again_when_it_changes_and_whole_or_not_at_all(serving: Deployment) -> None:
    assert serving.run().problems == []
    assert shown(serving) == {"page_stats": {HOUR[:10]: 2}, "referral_stats": {HOUR[:10]: 2}}
    assert serving.run().runs == 0, "what is served is not served again"

    # Another run of the day finds its batch served.
    assert serving.run(select=[DATASET], hours=(HOUR[:10], HOUR[:10])).problems == []
    assert shown(serving)["page_stats"] == {HOUR[:10]: 2}

    serving.land(HOUR, [event("10:07", "/a-page-of-a-very-long-name")], "more.json")
    with psycopg.connect(serving.settings.postgres.url or "") as connection:
        connection.execute("ALTER TABLE serving.page_stats ALTER page TYPE varchar(10)")
    refused = serving.run()
    assert "too long" in " ".join(refused.problems)
    assert shown(serving) == {"page_stats": {HOUR[:10]: 2}, "referral_stats": {HOUR[:10]: 2}}

    with psycopg.connect(serving.settings.postgres.url or "") as connection:
        connection.execute("ALTER TABLE serving.page_stats ALTER page TYPE text")
    assert serving.run().problems == []
    assert shown(serving) == {"page_stats": {HOUR[:10]: 3}, "referral_stats": {HOUR[:10]: 3}}


def test_conflicts_are_published_by_the_commit_of_their_visits(blog: Deployment) -> None:
    published = {name: blog.published(name)[HOUR] for name in ("silver.visits", "silver.visit_conflicts")}
    visits, conflicts = published.values()
    assert visits.run_id == conflicts.run_id
    assert conflicts.rows_out == visits.measures["conflicts"] == 1
    assert conflicts.inputs["silver.visits"] == visits.version
    assert companions.version_with(blog.lake, "silver.visit_conflicts", visits.version) == conflicts.version
    assert blog.problems() == []
