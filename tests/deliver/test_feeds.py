"""The asset for a partner accepts published rows, sends due events, and reports the account.

Patterns: Bin Pack Orderer, FIFO Orderer, Pseudo-Anonymizer.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from operator import itemgetter
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from blogdata.cli.main import app
from blogdata.deliver import destinations
from blogdata.deliver import partner as of_deployment
from blogdata.ledger.deliveries import deliveries
from blogdata.operate import config
from blogdata.runs.dataset import calendar
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from patterns.partner_feed import Partner, PartnerFaults, partner, received, token
from published import deployment, publish
from quality.contracts.serving import PARTNER_FEED

HOURS = ("2026-01-05T10", "2026-01-05T11")
TEXTS = ("visit_id", "user_id", "page", "ad_id", "browser", "device_type")
Visit = dict[str, Any]


class Blog:
    """A lake with silver.visits, a partner, and the asset that connects them."""

    def __init__(self, home: Path, server: Partner, file: Path) -> None:
        self.access: LakeResource = deployment(home)
        self.server, self.file = server, file
        (home / "blogdata.toml").write_text(f'[partner]\nurl = "{server.url}"\ntimeout = 0.2\n')
        self.settings = config.load(overrides={"BLOGDATA_HOME": str(home)})
        self.box = of_deployment.outbox(self.settings)
        self.asset = destinations.partner_feed.asset(calendar("2026-01-05"), "test")

    def publish(self, hour: str, visits: Sequence[Visit]) -> None:
        """Publish an hour of silver.visits, replacing its rows."""
        there = self.access.lake.caught_up("silver.visits")
        if there is not None:
            there.delete(f"event_hour = '{hour}'")
        columns = {name: pa.array([one.get(name) for one in visits], pa.string()) for name in TEXTS}
        content = pa.table(
            {
                "event_hour": pa.array([hour] * len(visits), pa.string()),
                "event_time": pa.array([one["event_time"] for one in visits], pa.timestamp("us", "UTC")),
                "keep_private": pa.array([one["keep_private"] for one in visits], pa.bool_()),
                **columns,
            }
        )
        publish(self.access.lake, "silver.visits", "event_hour", {hour: len(visits)}, content=content)

    def run(self, first: str = HOURS[0], last: str = HOURS[1]) -> dg.ExecuteInProcessResult:
        """Materialize the hours from the first to the last one."""
        resources = {"lake": self.access, "deployment": DeploymentResource(home=str(self.settings.home))}
        span = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
        return dg.materialize([self.asset], tags=span, resources=resources, raise_on_error=False)

    def sent(self) -> dict[str, list[tuple[int, str, str]]]:
        """List the partner's received records by visitor, whose token the partner has, in order."""
        users = set(self.access.lake.columns("silver.visits", ["user_id"])["user_id"].to_pylist())
        known = {token(self.settings.home, "key", user): user for user in users}
        found: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
        for one in received(self.file):
            found[known[one["key"]]].append((one["sequence"], one["payload"]["event_time"], one["payload"]["page"]))
        return dict(found)

    @property
    def behind(self) -> bool:
        """Tell whether a run would send something."""
        return destinations.is_behind(self.settings, self.access.events)


@pytest.fixture
def blog(tmp_path: Path) -> Iterator[Blog]:
    file = tmp_path / "received.jsonl"
    with partner(file, PartnerFaults.every(0.05), seed=2) as server:
        yield Blog(tmp_path / "home", server, file)


def visit(hour: str, minute: float, user: str, page: str, *, private: bool = False) -> Visit:
    time = datetime.fromisoformat(f"{hour}:00:00+00:00") + timedelta(minutes=minute)
    return {"event_time": time, "user_id": user, "visit_id": user, "page": page, "keep_private": private}


def truth(visits: Sequence[Visit]) -> dict[str, list[tuple[int, str, str]]]:
    records: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
    for shared in sorted((row for row in visits if not row["keep_private"]), key=itemgetter("event_time")):
        sent = records[shared["user_id"]]
        sent.append((len(sent) + 1, f"{shared['event_time']:%Y-%m-%dT%H:%M:%S.%fZ}", shared["page"]))
    return dict(records)


def test_the_partner_receives_what_is_published(blog: Blog) -> None:
    draw = random.Random(4)
    visits = {
        hour: [
            visit(hour, draw.random() * 60, f"user-{draw.randrange(40)}", f"/{number}", private=draw.random() < 0.2)
            for number in range(300)
        ]
        for hour in HOURS
    }
    for hour in HOURS:
        blog.publish(hour, visits[hour])
    assert blog.behind
    # What was published before the wanted hour is sent before it.
    result = blog.run(HOURS[1])
    assert (result.success, [one.passed for one in result.get_asset_check_evaluations()]) == (True, [True])
    assert blog.sent() == truth([*visits[HOURS[0]], *visits[HOURS[1]]])
    seen = {one.partition: one.metadata for one in result.asset_materializations_for_node("serving__partner_feed")}
    private = sum(row["keep_private"] for row in visits[HOURS[1]])
    names = ("rows_in", "rows/private", "dagster/partition_row_count")
    assert [seen[HOURS[1]][name].value for name in names] == [300, private, 300 - private]
    assert {each.partition for each in deliveries(blog.access.events, PARTNER_FEED.dataset)} == {*HOURS}
    assert not blog.behind
    records = received(blog.file)
    assert blog.run().success
    assert len(received(blog.file)) == len(records), "another run sends nothing"
    # No id that the partner has is in a table.
    sent = {value for record in records for value in (record["key"], record["payload"]["visit_id"])}
    assert len(sent) > 40
    assert sent.isdisjoint(row["user_id"] for rows in visits.values() for row in rows)


def test_republished_hours_send_only_what_is_new(blog: Blog) -> None:
    first, late, new = visit(HOURS[0], 30, "a", "/1"), visit(HOURS[0], 10, "a", "/0"), visit(HOURS[0], 40, "a", "/2")
    withdrawn = visit(HOURS[0], 20, "b", "/1")
    blog.publish(HOURS[0], [first, withdrawn])
    (refused,) = blog.run().filter_events(lambda event: event.is_step_failure)
    assert f"nothing of silver.visits has been published for {HOURS[1]}" in str(refused.step_failure_data)
    assert not blog.box.lines()
    assert blog.run(last=HOURS[0]).success
    blog.publish(HOURS[0], [late, first, new, {**withdrawn, "keep_private": True}])
    assert blog.behind
    assert blog.run(last=HOURS[0]).success
    assert {user: [page for _, _, page in events] for user, events in blog.sent().items()} == {
        "a": ["/1", "/0", "/2"],
        "b": ["/1"],
    }
    (line,) = blog.box.lines()
    assert (line.rows_in, line.private, line.states) == (4, 1, {"delivered": 3})
    assert (line.withdrawn, line.missing) == (1, 0)


def test_an_hour_published_while_it_is_read_is_read_again(blog: Blog, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = visit(HOURS[0], 10, "a", "/0"), visit(HOURS[0], 15, "a", "/new")
    blog.publish(HOURS[0], [first])
    batches = LakeResource.batches

    def overtaken(access: LakeResource, *of: Any) -> Iterator[pa.RecordBatch]:
        found = list(batches(access, *of))
        monkeypatch.setattr(LakeResource, "batches", batches)
        blog.publish(HOURS[0], [first, second])
        return iter(found)

    monkeypatch.setattr(LakeResource, "batches", overtaken)
    assert blog.run(last=HOURS[0]).success
    assert blog.behind
    assert blog.run(last=HOURS[0]).success
    assert blog.sent() == truth([first, second])
    assert not blog.behind


def test_recent_hours_are_not_sent_yet(blog: Blog) -> None:
    now = datetime(2026, 1, 5, 11, 59, tzinfo=timezone.utc)
    assert of_deployment.released(blog.settings, now) <= HOURS[0]
    assert HOURS[0] < of_deployment.released(blog.settings, now + timedelta(minutes=1))


def test_a_refused_key_is_named_and_the_ledger_says_what_waits(blog: Blog, monkeypatch: pytest.MonkeyPatch) -> None:
    blog.publish(HOURS[0], [visit(HOURS[0], 10, "a", "/0"), visit(HOURS[0], 20, "b", "/1", private=True)])
    blog.server.faults, blog.server.key = PartnerFaults(), "another key"
    (refused,) = blog.run(last=HOURS[0]).filter_events(lambda event: event.is_step_failure)
    assert "the partner refused the key: status 401" in str(refused.step_failure_data)
    monkeypatch.setenv("BLOGDATA_HOME", str(blog.settings.home))

    def ledger() -> list[tuple[int, int, dict[str, int], bool]]:
        found = json.loads(CliRunner().invoke(app, ["ledger", PARTNER_FEED.dataset, "--json"]).output)
        return [(one["rows_in"], one["rows_out"], one["reasons"], one["balanced"]) for one in found]

    assert ledger() == [(2, 0, {"private": 1, "waiting": 1}, True)]
    blog.server.key = None
    assert blog.run(last=HOURS[0]).success
    assert ledger() == [(2, 1, {"private": 1}, True)]
