"""Filter Interceptor in a stream: lines of an access log, live, are counted by filter as in the batch."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

import blog_log
from assets.streamed_datasets import assets
from assets.transforms.live_logs import STREAM
from blogdata.evidence import ledger
from blogdata.evidence.appended import appended
from blogdata.orchestration.names import asset_key
from blogdata.orchestration.shares import FILTERS
from blogdata.orchestration.stream_faults import StreamFailed
from lineage import live
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.test_access_log import land_logs
from quality.contracts import streamed_by
from quality.contracts.live_logs import LINES, VIEWS, WRITTEN
from resources import connections

BRONZE, SILVER = LINES.dataset, VIEWS.dataset
BEGIN, SECOND = 1400, 600
FIRST = 1 + [one.request.split(" ")[1] for one in blog_log.REQUESTS[BEGIN:]].index("/robots.txt")
"""The log's first line here, and the lines that have landed at first, and then. A client that reads /robots.txt before
the first cut views pages behind it, in the same hour; at the second cut another one does the opposite."""


def logged() -> list[bytes]:
    """Return the log, with a client that views a page before the second cut, and reads /robots.txt behind it."""
    lines = blog_log.LINES[BEGIN:]
    time = lines[SECOND - 1].split(b"[")[1].split(b"]")[0]
    view, act = (
        b'203.0.113.9 - - [%s] "GET %s HTTP/1.1" 200 5 "-" "Firefox/145.0"\n' % (time, page)
        for page in (b"/", b"/robots.txt")
    )
    return [*lines[: SECOND - 1], view, *lines[SECOND - 1 : SECOND + 1], act, *lines[SECOND + 1 :]]


LOGGED = logged()
HOUR = f"{blog_log.REQUESTS[BEGIN + SECOND].time:%Y-%m-%dT%H}"
Place = tuple[str, int]


@dataclass(frozen=True)
class Blog:
    """A deployment whose access log was taken in by the stream, and then by a run."""

    deployment: Deployment
    after_first: int
    checks: dict[str, bool]


def tick(deployment: Deployment, **more: Any) -> None:
    live.tick(deployment, STREAM, home=deployment.settings.home, **more)


@pytest.fixture(scope="module")
def blog(deploy: Deploy, tmp_path_factory: pytest.TempPathFactory) -> Blog:
    """The log grows and lands in three steps.

    The first ends within a line, the batch of the second fails between its tables, and then the checkpoint is lost.
    """
    made, server = deploy("live-logs"), tmp_path_factory.mktemp("server") / "access.log"

    def land(content: bytes) -> None:
        server.write_bytes(content)
        land_logs(made.landing, str(server))

    land(b"".join(LOGGED[:FIRST]) + LOGGED[FIRST][:40])
    tick(made)
    after_first = len(made.rows(BRONZE, "raw"))
    land(b"".join(LOGGED[:SECOND]))
    fail(made, SILVER, "written", tmp_path_factory.mktemp("probe"))
    land(b"".join(LOGGED))
    shutil.rmtree(made.settings.checkpoints)
    resources = dict(connections(made.settings))
    with dg.instance_for_test() as instance:
        ran = dg.materialize([assets("logs")], resources=resources, instance=instance)
        checks = {each.check_name: each.passed for each in ran.get_asset_check_evaluations() if each.asset_key == KEY}
    assert made.run(select=("bronze.visits",)).problems == []
    return Blog(deployment=made, after_first=after_first, checks=checks)


KEY = asset_key(SILVER)


def fail(deployment: Deployment, dataset: str, phase: str, probe: Path) -> None:
    """End the next batch when it has come to a phase of a publication."""
    number = 1 + max(commit.info["appended"]["batch"] for commit in appended(deployment.lake, SILVER))
    (probe / dataset / str(number)).mkdir(parents=True)
    (probe / dataset / str(number) / f"{phase}.fail").touch()
    with pytest.raises(StreamFailed, match=rf"WRITE_ENDED.{phase.upper()}"):
        tick(deployment, probe=str(probe))


def verdicts(deployment: Deployment, dataset: str) -> dict[Place, str | None]:
    """Read what removes each line of a dataset: a filter, its reasons, or nothing."""
    rows = deployment.rows(dataset, "source_file", "source_offset", "filtered_by", "reasons")
    assert len({row[:2] for row in rows}) == len(rows)
    return {(file, offset): " ".join(reasons) or filtered_by for file, offset, filtered_by, reasons in rows}


def removed(deployment: Deployment) -> dict[str, Counter[str]]:
    """Read the rows that each filter removed, by hour, from the ledger."""
    return {
        hour: Counter({name: rows for name, rows in entry.reasons.items() if name.startswith("filtered.")})
        for hour, entry in deployment.published(SILVER).items()
    }


def test_each_line_has_the_verdict_of_the_batch(blog: Blog) -> None:
    """Each has one: the lost checkpoint takes no line twice."""
    streamed, batch = verdicts(blog.deployment, BRONZE), verdicts(blog.deployment, "bronze.visits")
    assert len(streamed) == len(LOGGED)
    assert streamed.keys() == batch.keys()
    # Only a client that acts like a crawler after its page view was published is one for the batch alone.
    assert [(streamed[place], batch[place]) for place in batch if streamed[place] != batch[place]] == [
        (None, "crawler")
    ]
    views = blog.deployment.rows(SILVER, "source_file", "source_offset")
    assert len(set(views)) == len(views)
    assert set(views) == {place for place, verdict in streamed.items() if verdict is None}


def test_filters_remove_the_same_numbers_of_each_hour(blog: Blog) -> None:
    streamed = removed(blog.deployment)
    batch: dict[str, Counter[str]] = {hour: Counter() for hour in streamed}
    for hour, filtered_by, reasons in blog.deployment.rows("bronze.visits", "event_hour", "filtered_by", "reasons"):
        if filtered_by is not None and not reasons:
            batch[hour][f"filtered.{filtered_by}"] += 1
    streamed[HOUR]["filtered.crawler"] += 1
    assert streamed == batch
    assert sum(sum(hour.values()) for hour in streamed.values()) > 500


def test_all_lines_are_accounted_for(blog: Blog) -> None:
    made = blog.deployment
    lines = [
        line for contract in streamed_by(WRITTEN).values() for line in ledger.audit(made.lake, made.events, contract)
    ]
    assert [line.problem for line in lines if line.problem] == []
    entries, dead = made.published(SILVER).values(), sum(bool(reasons) for reasons in made.rows(BRONZE, "reasons"))
    filtered = sum(sum(hour.values()) for hour in removed(made).values())
    assert len(made.rows(SILVER, "page")) + filtered + dead == len(LOGGED)
    assert sum(entry.rows_in for entry in entries) + dead == len(LOGGED)


def test_a_line_that_has_not_ended_waits(blog: Blog) -> None:
    assert blog.after_first == FIRST
    assert list(blog.deployment.landing.glob("visits/*/*/*.part")) == []


def test_a_tick_compares_the_shares_of_filters(blog: Blog) -> None:
    assert blog.checks[FILTERS]
    assert all(blog.checks.values())
