"""Checkpointer: a tick's reports, its claim, and the summary of the stream command."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.streams.live_visits import STREAM
from blogdata.contract.publication import ROWS
from blogdata.ledger.claims import Claims
from blogdata.ledger.events import appended
from blogdata.patterns.observability.fine_grained_tracker import ColumnSource, sources
from blogdata.runs import turns
from blogdata.runs.checks import CONTRACT, LEDGER
from blogdata.runs.names import asset_key
from blogdata.stream import stream as streams
from blogdata.stream.stream import StreamBusy
from blogdata.stream.streamed_dataset import streamed
from lineage import live
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.live import BRONZE, HOURS, VISITS
from resources import connections

pytestmark = pytest.mark.campaign
NO_HOUR = "2026-13-45T99"


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as made:
        yield made


def ticked(deployment: Deployment, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    resources, made = dict(connections(deployment.settings)), streamed(STREAM, version="v")
    return dg.materialize([made], resources=resources, instance=instance, raise_on_error=False)


def rows(ran: dg.ExecuteInProcessResult) -> dict[dg.AssetKey | None, Any]:
    materialized = ran.get_asset_materialization_events()
    return {event.asset_key: event.materialization.metadata[ROWS].value for event in materialized}


def test_every_tick_reports_the_checks_of_what_it_has_appended(
    deploy: Deploy, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    made = deploy("live-dagster")
    made.land(HOURS[1], [event("10:05", "/a"), event("10:05", "/a"), b"{"])
    made.land(NO_HOUR, [event("10:06", "/b")])
    links = [made.folder(HOURS[1]) / "passwd.json", made.folder(HOURS[2])]
    for link, target in zip(links, ("/etc/passwd", str(tmp_path)), strict=True):
        link.symlink_to(target)
    (tmp_path / "visits.json").write_bytes(event("10:07", "/c"))
    ran = ticked(made, instance)
    assert rows(ran) == {asset_key(BRONZE): 3, asset_key(VISITS): 1}
    again = ticked(made, instance)
    assert again.success
    assert rows(again) == {}
    checks = ran.get_asset_check_evaluations()
    assert {(check.check_name, check.passed) for check in checks} == {(CONTRACT, True), (LEDGER, True)}
    (brought,) = appended(made.lake, BRONZE)
    columns = sources(made.lake, str(made.landing), brought)
    assert columns["raw"] == columns["arrival_hour"] == [ColumnSource(dataset="landing.visits", column="raw")]
    table = made.lake.caught_up(BRONZE)
    assert table is not None
    table.delete("source_offset = 0")
    made.land(HOURS[1], [event("10:09", "/d")], name="more.json")
    robbed = ticked(made, instance)
    assert not robbed.success
    failed = [check for check in robbed.get_asset_check_evaluations() if not check.passed]
    assert [(check.asset_key, check.check_name) for check in failed] == [(asset_key(BRONZE), LEDGER)]


def test_a_stream_ends_when_its_claim_is_taken(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    made = deploy("live-lease")
    made.land(HOURS[1], [event("10:05", "/a")])
    monkeypatch.setattr(turns, "RENEWAL", timedelta(0))
    name = f"stream {STREAM.name}"
    away, elsewhere = "elsewhere 1 1.0 abc", Claims(made.lake, name, alive=lambda claim: claim.owner == away)
    times: set[datetime] = set()

    def take_over() -> None:
        deadline = time.monotonic() + 900
        while len(times) < 3 and time.monotonic() < deadline:
            held = Claims(made.lake, name, alive=lambda claim: True).held()
            times.update(claim.taken_at for claim in held.values())
            time.sleep(0.2)
        elsewhere.take([STREAM.name], away)

    other = threading.Thread(target=take_over)
    other.start()
    with made.session() as spark:
        folder = made.settings.home / "checkpoints"
        with pytest.raises(StreamBusy, match="was taken over"):
            streams.run(spark, STREAM, live.place(made), checkpoints=folder, every_seconds=1)
        assert [query for query in spark.streams.active if query.name == STREAM.name] == []
    other.join()
    assert len(times) == 3, "the claim had been renewed twice by then"
    assert elsewhere.held().keys() == {STREAM.name}, "a claim of another run is not released"
