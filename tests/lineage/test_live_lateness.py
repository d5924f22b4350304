"""Late Data Detector in a stream: events from the future do not make others late."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from blogdata.publish.partitions import Grain, key_of
from lineage.conftest import Deploy
from lineage.deployment import event
from lineage.live import SET_ASIDE, VISITS, problems, tick


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
