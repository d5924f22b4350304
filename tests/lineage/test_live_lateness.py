"""Late Data Detector in a stream: the partitions of a source move its watermark, and events from the future do not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import pytest

from assets.transforms.live_logs import stream
from blogdata.evidence import ledger
from blogdata.evidence.appended import appended
from blogdata.patterns.error_management.late_data_detector import Combined, Strategy
from blogdata.patterns.ingestion.landed_lines import REPLAY_PREFIX
from blogdata.publish.partitions import Grain, key_of
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.live import SET_ASIDE, VISITS, problems, tick
from quality.contracts import streamed_by
from quality.contracts.live_logs import SOURCE, VIEWS, WRITTEN


@pytest.mark.campaign
def test_events_from_the_future_make_no_others_late(deploy: Deploy) -> None:
    made = deploy("live-ahead")
    now = datetime.now(timezone.utc)
    for name, page, time in (
        ("first.json", "/partner", now + timedelta(days=1)),
        ("second.json", "/now", now),
        ("third.json", "/partner", now + timedelta(days=1)),
    ):
        made.land(key_of(time, Grain.HOUR), [event("", page, event_time=time.isoformat())], name=name)
        # A new checkpoint continues with the old watermark.
        tick(made, renew=name == "second.json")
    assert sorted(made.rows(VISITS, "page")) == ["/now", "/partner"]
    assert made.rows(SET_ASIDE, "page", "reason") == [("/partner", "duplicate")]
    assert problems(made) == []


def logged(deployment: Deployment, server: str, *times: str) -> None:
    """Append lines to the log of a server."""
    log = deployment.landing / "access_logs" / f"{server}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        for time in times:
            request = f'"GET /{server}/{time} HTTP/1.1" 200 5 "-" "Firefox/145.0"'
            file.write(f"203.0.113.9 - - [05/Jan/2026:{time}:00 +0000] {request}\n")


def test_the_logs_of_two_servers_move_the_watermark_as_the_contract_declares(deploy: Deploy) -> None:
    made, how = deploy("live-servers"), stream(Combined(partitions={SOURCE: Strategy.MIN}))

    def tick_after(*, renew: bool = False, **lines: Sequence[str]) -> tuple[str, list[str]]:
        """Return the watermark after a batch, and the late rows of the table."""
        for server, times in lines.items():
            logged(made, server, *times)
        tick(made, how, renew=renew, home=made.settings.home)
        progress = next(appended(made.lake, VIEWS.dataset)).info["appended"]["notes"]["progress"]
        late = sorted(page for page, is_late in made.rows(VIEWS.dataset, "page", "late") if is_late)
        return progress["watermark"][11:16], late

    # The slower server holds the watermark of both.
    assert tick_after(fast=["10:30"], slow=["10:00"]) == ("09:45", [])
    # A correction is no server, and holds nobody's watermark.
    corrected = made.landing / "visits" / "date=2026-01-05" / "hour=10" / f"{REPLAY_PREFIX}{'0' * 16}-{'0' * 16}.log"
    corrected.write_bytes((made.landing / "access_logs" / "slow.log").read_bytes().splitlines(keepends=True)[0])
    # Only what is behind that one is late; each server's progress was kept, and now the other one holds the watermark.
    assert tick_after(renew=True, slow=["09:50", "09:40", "11:00"]) == ("10:15", ["/slow/09:40"])
    assert len(made.rows(VIEWS.dataset, "page")) == 6
    found = [line for one in streamed_by(WRITTEN).values() for line in ledger.audit(made.lake, made.events, one)]
    assert [line.problem for line in found if line.problem] == []
