"""The partner gets each shareable event once, in order per visitor, whatever fails on the way.

Patterns: Bin Pack Orderer, FIFO Orderer, Pseudo-Anonymizer.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import oracle
from blogdata.operations.alerting import observed
from blogdata.orchestration.partner import outbox
from blogdata.planning.findings import unsent
from blogdata.services import config
from blogdata.simulator.faults import FaultRates
from blogdata.simulator.spec import SimulationSpec
from data_value.partner_feed import partner, received, token
from data_value.partner_server import Partner, PartnerFaults
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from quality.contracts.serving import PARTNER_FEED

SELECTED = ["bronze.visits", "silver.visits", PARTNER_FEED.dataset]
Sent = dict[str, list[tuple[int, str, str, str]]]
Told = Callable[[str, str], str]


def truth(landing: Path, told: Told) -> Sent:
    """Compute the shareable events line by line in plain Python: by the visitor's token, in the order of time."""
    winners: dict[tuple[Any, ...], tuple[Any, dict[str, Any]]] = {}
    for hour, folder in oracle.arrival_folders(landing):
        for raw, _ in oracle.lines_of(folder):
            verdict = oracle.judge_json(raw, hour)
            if not verdict.reasons:
                winners.setdefault((verdict.time, *verdict.identity), (verdict.time, json.loads(raw)))
    found: dict[str, list[tuple[Any, str, str]]] = defaultdict(list)
    for time, one in winners.values():
        if one.get("keep_private") is False:
            found[one["user_id"]].append((time, one["visit_id"], one["page"]))
    return {
        told("key", key): [
            (number, f"{time:%Y-%m-%dT%H:%M:%S.%fZ}", told("visit_id", visit), page)
            for number, (time, visit, page) in enumerate(sorted(events), 1)
        ]
        for key, events in found.items()
    }


def by_visitor(file: Path) -> Sent:
    found: Sent = defaultdict(list)
    for one in received(file):
        payload = one["payload"]
        found[one["key"]].append((one["sequence"], payload["event_time"], payload["visit_id"], payload["page"]))
    return dict(found)


def same(sent: Sent, expected: Sent) -> bool:
    """Compare; events of one visitor at the same instant have no order."""
    for events in (*sent.values(), *expected.values()):
        assert [one[0] for one in events] == [*range(1, len(events) + 1)]
        assert [one[1] for one in events] == sorted(one[1] for one in events)
    return {k: sorted(e[1:] for e in v) for k, v in sent.items()} == {
        k: sorted(e[1:] for e in v) for k, v in expected.items()
    }


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Partner]:
    """A partner with a twentieth of its requests failing for each kind of fault."""
    file = tmp_path_factory.mktemp("partner") / "received.jsonl"
    with partner(file, PartnerFaults.every(0.05), seed=11) as server:
        yield server


@pytest.mark.campaign
def test_the_partner_receives_exactly_the_truth(deploy: Deploy, api: Partner) -> None:
    blog = deploy("feeding")
    file = api.file
    rates = {one.name: 0.03 for one in fields(FaultRates) if one.name != "huge_line"}
    blog.simulate(SimulationSpec(days=1, visits_per_day=3000, seed=5, faults=FaultRates(**rates)))
    toml = blog.settings.home / "blogdata.toml"
    toml.write_text(toml.read_text() + f'\n[partner]\nurl = "{api.url}"\ntimeout = 0.4\n')
    fed = Deployment(settings=config.load(overrides={"BLOGDATA_HOME": str(blog.settings.home)}))

    assert fed.run(select=SELECTED).problems == []
    told = partial(token, fed.settings.home)
    expected = truth(fed.landing, told)
    assert same(by_visitor(file), expected)
    rows = sum(entry.rows_out for entry in fed.published("silver.visits").values())
    lines = outbox(fed.settings).lines()
    assert sum(line.rows_in for line in lines) == rows
    assert sum(line.states["delivered"] for line in lines) == sum(map(len, expected.values()))
    assert sum(line.private for line in lines) > 0
    assert all(line.missing == 0 for line in lines)
    assert "ip" not in json.dumps(received(file)[0]["payload"])
    # Nothing that the partner has is an id that any table of the lake has.
    ids = {value for row in fed.rows("silver.visits", "visit_id", "user_id") for value in row}
    assert not ids & {value for one in received(file) for value in (one["key"], one["payload"]["visit_id"])}

    # A late event of a visitor whose later event the partner already has, and another visitor's.
    hour, visitor = "2026-01-06T01", "visitor-of-the-test"
    fed.land(hour, [event("", "/b", event_time=f"{hour}:30:00Z", user_id=visitor)])
    assert fed.run(select=SELECTED, hours=(hour, hour)).problems == []
    late = [
        event("", page, event_time=f"{hour}:{minute}:00Z", user_id=visitor) for page, minute in (("/a", 10), ("/c", 40))
    ]
    fed.land(
        hour, [*late, event("", "/p", event_time=f"{hour}:50:00Z", user_id=visitor, keep_private=None)], "more.json"
    )
    assert fed.run(select=SELECTED, hours=(hour, hour)).problems == []
    assert [one[3] for one in by_visitor(file)[told("key", visitor)]] == ["/b", "/a", "/c"]
    assert [one["payload"]["page"] for one in received(file) if one.get("correction")] == ["/a"]
    (line,) = [line for line in outbox(fed.settings).lines() if line.partition == hour]
    assert (line.states, line.private) == ({"delivered": 3}, 1)
    assert not [*unsent(observed(fed.settings))]


def test_deployments_without_a_partner_have_no_feed(deploy: Deploy) -> None:
    with pytest.raises(Exception, match=f"no dataset is called {PARTNER_FEED.dataset}"):
        deploy("without").run(select=[PARTNER_FEED.dataset])
